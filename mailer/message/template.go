package message

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	texttemplate "text/template"
)

// DefaultTemplate is the built-in template, in English ("en") and Chinese ("zh").
const DefaultTemplate = "code"

//go:embed templates
var builtinTemplates embed.FS

// Templates are the texts of emails by name and locale, parsed and tried out. They do not
// change once loaded.
type Templates struct {
	byName        map[string]map[string]*template // name, then locale in lower case
	defaultLocale string
	settings      map[string]settings // by name
	digest        [sha256.Size]byte
}

// template is one name in one locale: four files.
type template struct {
	subject, text, expires *texttemplate.Template
	body                   *htmltemplate.Template
	// plain says that code and address are shown as they are and decide nothing.
	plain bool
	// notMe says that it has the link NotMe.
	notMe bool
	// linked says that an email may have a link and no code.
	linked bool
}

// fields is what a template may show.
type fields struct {
	Code      string
	Email     string            // the recipient, as shown gives it
	ExpiresIn string            // how long the code is valid, in words; empty if it does not expire
	Sender    string            // the sender's display name; may be empty
	Data      map[string]string // what the request has for the template
	NotMe     string            // a link by which the recipient says that they did not ask
}

// LoadTemplates reads the built-in templates and, over them, those of own, which holds
// name/locale/{subject.txt,text.txt,body.html,expires.txt} and name/template.yaml, and may be nil.
// Every template must have the default locale.
//
// The emails of hooks have templates of their own, which are there for the hooks that are named.
//
// Each template is rendered with sample data, and for its sender by NewComposer, so that a mistake
// prevents startup rather than an email. The error is one line that names the file, and the line
// where there is one.
func LoadTemplates(own fs.FS, defaultLocale string, hooks ...string) (*Templates, error) {
	sources := sources{}
	builtin, err := fs.Sub(builtinTemplates, "templates")
	if err == nil {
		err = sources.read(builtin)
	}
	if err == nil {
		err = sources.addKinds(hooks)
	}
	if err == nil && own != nil {
		err = sources.read(own)
	}
	if err != nil {
		return nil, templateError(err)
	}
	sources.inheritExpiry()
	t := &Templates{byName: map[string]map[string]*template{}, defaultLocale: normalLocale(defaultLocale), digest: sources.digest()}
	for _, path := range slices.Sorted(maps.Keys(sources)) { // in order, as in try
		name, locale, _ := strings.Cut(path, "/")
		if t.byName[name] == nil {
			if sources[name+"/"+t.defaultLocale] == nil {
				return nil, templateError(fmt.Errorf("%s: no %q, the default locale; it has %s", name, t.defaultLocale, strings.Join(sources.locales(name), ", ")))
			}
			t.byName[name] = map[string]*template{}
		}
		if t.byName[name][locale], err = parseTemplate(sources[path]); err != nil {
			return nil, templateError(err)
		}
		t.byName[name][locale].linked = isLinked(name)
	}
	if err := t.readSettings(own); err != nil {
		return nil, templateError(err)
	}
	return t, t.try("Example")
}

func (t *Templates) readSettings(own fs.FS) error {
	t.settings = map[string]settings{}
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		s := settings{Critical: slices.Contains(criticalKinds, name)}
		if err := s.read(own, name); err != nil {
			return err
		}
		t.settings[name] = s
	}
	t.digest = sha256.Sum256(fmt.Appendf(t.digest[:], "%v", t.settings))
	return nil
}

func parseTemplate(from *source) (*template, error) {
	var all string
	for _, name := range templateFiles {
		file, ok := from.files[name]
		if !ok {
			return nil, fmt.Errorf("%s/%s: missing", from.path, name)
		}
		all += file.text + "\n"
	}
	var err error
	text := func(name string) *texttemplate.Template {
		file := from.files[name]
		parsed, failed := texttemplate.New(file.path).Option("missingkey=error").Parse(file.text)
		err = errors.Join(err, failed)
		return parsed
	}
	t := &template{subject: text(subjectFile), text: text(textFile), expires: text(expiresFile)}
	body, failed := htmltemplate.New(from.files[bodyFile].path).Option("missingkey=error").Parse(from.files[bodyFile].text)
	t.body = body
	t.notMe = strings.Contains(all, ".NotMe")
	t.plain = !t.notMe && !strings.Contains(shownAsIs.Replace(all), ".Code") && !strings.Contains(shownAsIs.Replace(all), ".Email")
	return t, errors.Join(err, failed)
}

var shownAsIs = strings.NewReplacer("{{.Code}}", "", "{{.Email}}", "")

// find returns the template of a name in the locale nearest to the requested one, or nil.
func (t *Templates) find(name, locale string) *template {
	locales := t.byName[cmp.Or(name, DefaultTemplate)]
	return locales[nearestLocale(locales, locale, t.defaultLocale)]
}

// try renders every template for a sender of this name, in order, so that the first mistake is
// always the same.
func (t *Templates) try(sender string) error {
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		for _, locale := range slices.Sorted(maps.Keys(t.byName[name])) {
			if err := t.byName[name][locale].try(cmp.Or(t.settings[name].from.Name, sender)); err != nil {
				return templateError(err)
			}
		}
	}
	return nil
}

// try renders the template as full and as bare as a request can make it.
func (t *template) try(sender string) error {
	for i, expiresInMS := range []int64{1000, 600_000, 7_200_000, 172_800_000, 0, 0} {
		sample := fields{
			Code: strings.Repeat("8", []int{maxCode, minCode}[i%2]), Email: "someone@example.com", Sender: sender, NotMe: sampleNotMe,
			Data: map[string]string{"link": sampleLink}, // not empty, or {{with .Data}} would be skipped
		}
		out, err := t.render(sample, expiresInMS)
		for key := missingKey(err); key != ""; key = missingKey(err) {
			sample.Data[key] = "sample"
			out, err = t.render(sample, expiresInMS)
		}
		if err != nil {
			return err
		}
		if problem := subjectProblem(out.subject); problem != "" {
			return fmt.Errorf("%s: %s", t.subject.Name(), problem)
		}
		for file, text := range map[string][]byte{t.text.Name(): out.text, t.body.Name(): out.html} {
			needed, shows := "{{.Code}}", sample.Code
			if t.linked {
				needed, shows = "{{.Data.link}}", sampleLink
			}
			if !bytes.Contains(text, []byte(shows)) {
				return fmt.Errorf("%s: does not show %s", file, needed)
			}
		}
	}
	return nil
}

const sampleNotMe = "https://link.example/not-me"

// sampleLink stands for the link of an email that has one in place of a code.
const sampleLink = "https://link.example/sample"

// content is a template with its fields filled in.
type content struct {
	subject    string
	text, html []byte
}

// render fills in the fields. The expiry is put into words first; 0 means that there is
// none.
func (t *template) render(f fields, expiresInMS int64) (content, error) {
	var out bytes.Buffer
	if valid := durationIn(expiresInMS); valid.Count > 0 {
		if err := t.expires.Execute(&out, valid); err != nil {
			return content{}, err
		}
		f.ExpiresIn = strings.TrimSpace(out.String())
		out.Reset()
	}
	if err := t.subject.Execute(&out, f); err != nil {
		return content{}, err
	}
	subject := strings.TrimSpace(out.String())
	out.Reset()
	if err := t.text.Execute(&out, f); err != nil {
		return content{}, err
	}
	split := out.Len()
	if err := t.body.Execute(&out, f); err != nil {
		return content{}, err
	}
	both := out.Bytes()
	return content{subject: subject, text: both[:split:split], html: both[split:]}, nil
}

var noEntry = regexp.MustCompile(`map has no entry for key "(\w+)"`)

// missingKey returns the key of .Data that a template needed and did not find, or nothing.
// missingkey=error reports it in its text alone.
func missingKey(err error) string {
	if err == nil {
		return ""
	}
	if found := noEntry.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return ""
}

// duration is what expires.txt puts into words: a count of "second", "minute", "hour" or
// "day".
type duration struct {
	Count int64
	Unit  string
}

// durationIn returns a time in the largest unit of which there are two or more, or exactly one.
// It rounds down, so that an email never promises more time than there is, but not to nothing.
// Without an expiry it is zero.
func durationIn(ms int64) duration {
	if ms <= 0 {
		return duration{}
	}
	seconds := max(ms/1000, 1)
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"day", 86400}, {"hour", 3600}, {"minute", 60}} {
		if seconds == unit.seconds || seconds >= 2*unit.seconds {
			return duration{Count: seconds / unit.seconds, Unit: unit.name}
		}
	}
	return duration{Count: seconds, Unit: "second"}
}

// templateError makes one line of what went wrong: "template code/en/text.txt:3: …".
func templateError(err error) error {
	text := strings.TrimPrefix(err.Error(), "html/template:")
	text = strings.TrimPrefix(strings.TrimSpace(text), "template:")
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return fmt.Errorf("template %s", text)
}
