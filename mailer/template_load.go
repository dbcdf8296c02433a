package mailer

import (
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"maps"
	"slices"
	"strings"
	texttemplate "text/template"
)

//go:embed templates
var builtinTemplates embed.FS

// LoadTemplates reads the built-in templates and, over them, those of own,
// which holds name/locale/{subject.txt,text.txt,body.html,expires.txt} and may
// be nil. Every template must have the default locale, because whoever asks for
// an unknown one gets that.
//
// Each template is rendered with sample data before LoadTemplates returns, and
// for its sender before NewComposer does, so that a mistake stops the start and
// not somebody's mail. The error is one line that names the file, and the line
// where there is one.
func LoadTemplates(own fs.FS, defaultLocale string) (*Templates, error) {
	sources := templateSources{}
	builtin, err := fs.Sub(builtinTemplates, "templates")
	if err == nil {
		err = sources.read(builtin)
	}
	if err == nil && own != nil {
		err = sources.read(own)
	}
	if err != nil {
		return nil, templateError(err)
	}
	sources.inheritExpiry()
	t := &Templates{byName: map[string]map[string]*mailTemplate{}, defaultLocale: normalLocale(defaultLocale), digest: sources.digest()}
	for _, name := range slices.Sorted(maps.Keys(sources)) { // in order, so that the first mistake is always the same
		if err := t.add(name, sources[name]); err != nil {
			return nil, templateError(err)
		}
	}
	return t, nil
}

func (t *Templates) add(name string, locales map[string]map[string]string) error {
	if _, ok := locales[t.defaultLocale]; !ok {
		return fmt.Errorf("%s: no %q, the default locale", name, t.defaultLocale)
	}
	t.byName[name] = map[string]*mailTemplate{}
	for _, locale := range slices.Sorted(maps.Keys(locales)) {
		parsed, err := parseTemplate(name+"/"+locale, locales[locale])
		if err != nil {
			return err
		}
		t.byName[name][locale] = parsed
	}
	return nil
}

func parseTemplate(path string, files map[string]string) (*mailTemplate, error) {
	for _, file := range templateFiles() {
		if _, ok := files[file]; !ok {
			return nil, fmt.Errorf("%s/%s: missing", path, file)
		}
	}
	var err error
	text := func(file string) *texttemplate.Template {
		parsed, failed := texttemplate.New(path + "/" + file).Option("missingkey=error").Parse(files[file])
		err = errors.Join(err, failed)
		return parsed
	}
	m := &mailTemplate{path: path, subject: text(subjectFile), text: text(textFile), expires: text(expiresFile)}
	body, failed := htmltemplate.New(path + "/" + bodyFile).Option("missingkey=error").Parse(files[bodyFile])
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	m.body = body
	m.needs = m.dataKeys()
	m.lookForChoice(files)
	m.size, err = m.try("Example", "")
	return m, err
}

// tryFor renders every template for a sender of this name.
func (t *Templates) tryFor(sender string) error {
	for _, name := range t.Names() {
		for _, locale := range t.Locales(name) {
			if _, err := t.byName[name][locale].try(sender, sender); err != nil {
				return templateError(err)
			}
		}
	}
	return nil
}

// try renders the template as full and as bare as a request can make it, for
// senders of these names, and returns about how many octets it renders to.
func (m *mailTemplate) try(sender, bareSender string) (size int, err error) {
	full := templateFields{Code: strings.Repeat("8", maxCode), Email: "someone@example.com", Sender: sender, Data: map[string]string{}}
	for _, key := range m.needs {
		full.Data[key] = "sample"
	}
	for _, expiresInMS := range []int64{1000, 600_000, 7_200_000, 172_800_000, 0} {
		sample := full
		if expiresInMS == 0 {
			sample.Sender = bareSender
		}
		out, err := m.render(sample, expiresInMS)
		if err != nil {
			return 0, err
		}
		if problem := subjectProblem(out.subject); problem != "" {
			return 0, fmt.Errorf("%s/%s: %s", m.path, subjectFile, problem)
		}
		if !strings.Contains(string(out.text), full.Code) {
			return 0, fmt.Errorf("%s/%s: does not show {{.Code}}", m.path, textFile)
		}
		if !strings.Contains(string(out.html), full.Code) {
			return 0, fmt.Errorf("%s/%s: does not show {{.Code}}", m.path, bodyFile)
		}
		size = max(size, len(out.text)+len(out.html)+256)
	}
	return size, nil
}

// dataKeys finds the keys of .Data that the template speaks of. Each must come
// with every request; what may be left out is written {{index .Data "key"}}.
func (m *mailTemplate) dataKeys() []string {
	found := map[string]bool{}
	for _, t := range []*texttemplate.Template{m.subject, m.text} {
		for _, part := range t.Templates() {
			collectKeys(found, part.Tree)
		}
	}
	for _, part := range m.body.Templates() {
		collectKeys(found, part.Tree)
	}
	return slices.Sorted(maps.Keys(found))
}

// templateError makes one line of what went wrong: "mailer: template
// code/en/text.txt:3: …".
func templateError(err error) error {
	text := strings.TrimPrefix(err.Error(), "html/template:")
	text = strings.TrimPrefix(strings.TrimSpace(text), "template:")
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return fmt.Errorf("mailer: template %s", text)
}
