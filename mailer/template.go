package mailer

import (
	"bytes"
	"crypto/sha256"
	htmltemplate "html/template"
	"maps"
	"slices"
	"strings"
	texttemplate "text/template"
)

// DefaultTemplate is the built-in template: a code, and little else. It comes
// in English ("en") and Chinese ("zh").
const DefaultTemplate = "code"

// Templates are the texts of mails, by name and locale, parsed and tried out.
// They do not change once loaded and may be used by any number of goroutines.
type Templates struct {
	byName        map[string]map[string]*mailTemplate // name, then locale in lower case
	defaultLocale string
	digest        [sha256.Size]byte
}

// mailTemplate is one name in one locale: four files.
type mailTemplate struct {
	path                   string // name/locale
	subject, text, expires *texttemplate.Template
	body                   *htmltemplate.Template
	needs                  []string // the keys of .Data it speaks of, sorted
	choosy                 bool     // some requests may not suit it
	madeBy, subjectBy      string   // the field of a request that is then at fault, most likely
	size                   int      // about how many octets it renders to
}

// templateFields is what a template may speak of.
type templateFields struct {
	Code      string            // the code
	Email     string            // the address the mail goes to, as shown gives it
	ExpiresIn string            // how long the code is valid, in words; empty if it does not expire
	Sender    string            // the sender's display name; may be empty
	Data      map[string]string // what the request brought for the template
}

// Names lists the templates, sorted.
func (t *Templates) Names() []string { return slices.Sorted(maps.Keys(t.byName)) }

// Locales lists the locales of a template, sorted and in lower case; none if
// there is no such template.
func (t *Templates) Locales(name string) []string { return slices.Sorted(maps.Keys(t.byName[name])) }

// find gives the template for a name and the locale nearest to the one asked
// for, or nil if there is no such name.
func (t *Templates) find(name, locale string) *mailTemplate {
	if name == "" {
		name = DefaultTemplate
	}
	locales := t.byName[name]
	if locales == nil {
		return nil
	}
	return locales[nearestLocale(locales, locale, t.defaultLocale)]
}

// rendered is a template with its fields filled in.
type rendered struct {
	subject    string
	text, html []byte
}

// render fills in the fields. The expiry comes as milliseconds and is put into
// words first; 0 means that there is none.
func (m *mailTemplate) render(fields templateFields, expiresInMS int64) (rendered, error) {
	var out bytes.Buffer
	if expiresInMS > 0 {
		if err := m.expires.Execute(&out, durationIn(expiresInMS)); err != nil {
			return rendered{}, err
		}
		fields.ExpiresIn = strings.TrimSpace(out.String())
		out.Reset()
	}
	if err := m.subject.Execute(&out, fields); err != nil {
		return rendered{}, err
	}
	subject := strings.TrimSpace(out.String())
	out.Reset()
	out.Grow(m.size)
	if err := m.text.Execute(&out, fields); err != nil {
		return rendered{}, err
	}
	split := out.Len()
	if err := m.body.Execute(&out, fields); err != nil {
		return rendered{}, err
	}
	both := out.Bytes()
	return rendered{subject: subject, text: both[:split:split], html: both[split:]}, nil
}
