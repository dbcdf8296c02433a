package message_test

import (
	"bytes"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/mail"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
)

// files makes a file system of alternating paths and texts.
func files(pairs ...string) fstest.MapFS {
	made := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		made[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return made
}

// own is a template of that name.
func own(subject, text, body string) fstest.MapFS {
	return files("own/en/subject.txt", subject, "own/en/text.txt", text, "own/en/body.html", body)
}

// invite is a whole template, but for its expires.txt, with changes over it.
func invite(changes ...string) fstest.MapFS {
	made := files(
		"invite/en/subject.txt", "{{.Data.host}} invites you",
		"invite/en/text.txt", "{{.Code}} from {{.Data.host}}{{with .ExpiresIn}} for {{.}}{{end}}",
		"invite/en/body.html", "<p>{{.Code}} from {{.Data.host}}{{with index .Data \"note\"}} ({{.}}){{end}}</p>",
	)
	for path, file := range files(changes...) {
		made[path] = file
	}
	return made
}

func composeWith(t *testing.T, own fstest.MapFS, change func(*message.Request)) readBack {
	t.Helper()
	composer := newComposer(t, "no-reply@acme.example", own)
	request := sampleRequest(t)
	change(&request)
	return read(t, must.Get(composer.Compose(request))(t))
}

// A visitor chooses most of an address. A mail reader must find nothing in it to make a link
// of.
func TestCompose_AddressWithMarks_NoLink(t *testing.T) {
	for to, want := range map[string]string{
		"Alice@example.com":                             "Alice@example.com",
		"a.b-c_d+e@example.com":                         "a.b-c_d+e@example.com",
		"victim+www.evil.example/login@example.com":     "…@example.com",
		"victim+www.evil.example?a=b@example.com":       "…@example.com",
		"victim+www.evil.example'@example.com":          "…@example.com",
		"www.evil.example/x@victim.fastmail.com":        "…@victim.fastmail.com",
		"evil.example#*|now@example.com":                "…@example.com",
		"evil?UTF-8?B?d3d3LmV2aWwuZXhhbXBsZQ@a.example": "…@a.example",
	} {
		back := composeWith(t, nil, func(r *message.Request) { r.To = parse(t, to) })
		for kind, part := range map[string]string{"text": back.text, "HTML": html.UnescapeString(back.html)} {
			if !strings.Contains(part, want) || strings.Contains(part, "evil") {
				t.Errorf("%s: the %s lacks %q, or has more:\n%s", to, kind, want, part)
			}
		}
	}
}

func TestTemplates_Own_AddedOrOverride(t *testing.T) {
	own := files(
		"code/en/subject.txt", "\ufeffHello {{.Code}}\r\n",
		"code/fr/subject.txt", "{{.Code}} est votre code", "code/fr/text.txt", "{{.Code}} {{.ExpiresIn}}",
		"code/fr/body.html", "<p>{{.Code}}</p>", "code/fr/expires.txt", "{{.Count}} {{.Unit}} (fr)",
		".git/config", "not looked at", "code/.DS_Store", "nor this", "code/en/.swp", "nor this",
	)
	invited := map[string]string{"host": "Böb & <Co>", "note": "<b>hi</b>"}
	for _, c := range []struct {
		own                    fstest.MapFS
		template, locale       string
		subject, text, htmlHas string
	}{
		{invite(), "invite", "en", "Böb & <Co> invites you", "123456 from Böb & <Co> for 10 minutes", "<p>123456 from Böb &amp; &lt;Co&gt; (&lt;b&gt;hi&lt;/b&gt;)</p>"},
		{own, "code", "fr-CA", "123456 est votre code", "123456 10 minute (fr)", "<p>123456</p>"},
		{own, "code", "en", "Hello 123456", "", "123456 is your code</title>"},
	} {
		back := composeWith(t, c.own, func(r *message.Request) { r.Template, r.Locale, r.Data = c.template, c.locale, invited })
		if subject := subjectOf(t, back); subject != c.subject || c.text != "" && back.text != c.text || !strings.Contains(back.html, c.htmlHas) {
			t.Errorf("%s in %s: %q, %q, %q", c.template, c.locale, subject, back.text, back.html)
		}
	}
}

// A mistake in a template stops the start, with one line that says where.
func TestLoadTemplates_Broken_OneLineNamesTheFile(t *testing.T) {
	tests := []struct {
		name string
		own  fs.FS
		want string
	}{
		{"syntax in text", invite("invite/en/text.txt", "a\nb\n{{.Code"), "invite/en/text.txt:3: "},
		{"syntax in HTML", invite("invite/en/body.html", "a\n{{if}}"), "invite/en/body.html:2: "},
		{"unknown function", invite("invite/en/subject.txt", "{{shout .Code}}"), "invite/en/subject.txt:1: "},
		{"misspelt field in text", invite("invite/en/text.txt", "\n\n{{.Cod}}"), "invite/en/text.txt:3:"},
		{"misspelt field in HTML", invite("invite/en/body.html", "\n{{.Code}}{{.Emial}}"), "invite/en/body.html:2:"},
		{"misspelt field in a branch", invite("invite/en/text.txt", "{{.Code}}\n{{if .ExpiresIn}}{{.Expires}}{{end}}"), "invite/en/text.txt:2:"},
		{"misspelt field without expiry", invite("invite/en/text.txt", "{{.Code}}{{if not .ExpiresIn}}\n{{.Expires}}{{end}}"), "invite/en/text.txt:2:"},
		{"broken word for days", invite("invite/en/expires.txt", "{{.Count}} {{if eq .Unit \"day\"}}{{.Oops}}{{end}}"), "invite/en/expires.txt:1:"},
		{"ambiguous HTML", invite("invite/en/body.html", "{{.Code}}<a href='{{if .Code}}x'>{{end}}"), "invite/en/body.html"},
		{"text without the code", invite("invite/en/text.txt", "hello"), "invite/en/text.txt: does not show {{.Code}}"},
		{"HTML without the code", invite("invite/en/body.html", "hello"), "invite/en/body.html: does not show {{.Code}}"},
		{"empty subject", invite("invite/en/subject.txt", " \n"), "invite/en/subject.txt: is empty"},
		{"subject of two lines", invite("invite/en/subject.txt", "a\nb"), "invite/en/subject.txt: contains a control character"},
		{"endless subject", invite("invite/en/subject.txt", strings.Repeat("a", 201)), "invite/en/subject.txt: is too long"},
		{"too long with a long code", invite("invite/en/subject.txt", strings.Repeat("a", 189)+"{{.Code}}"), "invite/en/subject.txt: is too long"},
		{"a cut of a short code", invite("invite/en/text.txt", "{{.Code}}{{slice .Code 0 5}}"), "invite/en/text.txt:1:"},
		{"misspelt file", invite("invite/en/subjct.txt", "x"), "invite/en/subjct.txt: not one of"},
		{"stray file", files("readme", "x"), "readme: a file among directories"},
		{"bad name", files("My Mail/en/subject.txt", "x"), "My Mail: a template's name"},
		{"bad locale", files("code/english!/subject.txt", "x"), "code/english!: not a locale"},
		{"one locale twice", files("code/pt-BR/text.txt", "x", "code/pt_br/text.txt", "x"), "code/pt_br: the same locale as code/pt-BR"},
		{"a file is missing", files("invite/en/text.txt", "{{.Code}}", "invite/en/subject.txt", "x"), "invite/en/body.html: missing"},
		{"no words for an expiry", files("code/de/text.txt", "{{.Code}}", "code/de/subject.txt", "x", "code/de/body.html", "{{.Code}}"), "code/de/expires.txt: missing"},
		{"a locale as it was written", files("code/pt_BR/text.txt", "{{.Cod}}", "code/pt_BR/subject.txt", "x", "code/pt_BR/body.html", "{{.Code}}", "code/pt_BR/expires.txt", "x"), "code/pt_BR/text.txt:1:"},
		{"a file missing there", files("code/pt_BR/text.txt", "{{.Code}}"), "code/pt_BR/subject.txt: missing"},
		{"inherited words", files("alert/en/text.txt", "{{.Code}}", "alert/en/subject.txt", "x", "alert/en/body.html", "{{.Code}}", "code/en/expires.txt", "{{.Oops}}"), "code/en/expires.txt:1:"},
		{"no default locale", files("invite/zh/text.txt", "{{.Code}}"), `invite: no "en", the default locale`},
		{"no directory", os.DirFS("testdata/no-such-directory"), ".: "},
		{"huge file", invite("invite/en/text.txt", strings.Repeat("a", 129<<10)), "invite/en/text.txt: longer than 128 KiB"},
		{"endless recursion", invite("invite/en/text.txt", `{{.Code}}{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`), "invite/en/text.txt"},
		{"text saved as GBK", invite("invite/en/text.txt", "\xd1\xe9\xd6\xa4\xc2\xeb {{.Code}}"), "invite/en/text.txt: is not valid UTF-8"},
		{"unknown setting", invite("invite/template.yaml", "critical: true\ncritcal: true"), "invite/template.yaml:2: unknown key critcal"},
		{"a sender that is none", invite("invite/template.yaml", "critical: true\nfrom: hidden"), "invite/template.yaml:2: from: the sender must read like"},
		{"a reply to two", invite("invite/template.yaml", "reply_to: a@acme.example, b@acme.example"), "invite/template.yaml:1: reply_to: the sender must read like"},
		{"a line break in a header", invite("invite/template.yaml", "headers:\n  X-Tag: \"a\\r\\nBcc: victim@b.example\""), "invite/template.yaml:2: headers: the value of X-Tag must be up to 900"},
		{"a line break in its name", invite("invite/template.yaml", "headers: {\"X-Tag: a\\r\\nBcc\": victim@b.example}"), "invite/template.yaml:1: headers: a name is up to 64 letters"},
		{"another recipient", invite("invite/template.yaml", "headers: {bCc: victim@b.example}"), "invite/template.yaml:1: headers: bCc is written by mailgate"},
		{"another structure", invite("invite/template.yaml", "headers: {Content-Transfer-Encoding: binary}"), "invite/template.yaml:1: headers: Content-Transfer-Encoding is written"},
		{"a proof", invite("invite/template.yaml", "headers: {x-smtpapi: '{}'}"), "invite/template.yaml:1: headers: x-smtpapi is written"},
		{"a header to be filled in", invite("invite/template.yaml", "headers:\n  X-A: a\n  List-Unsubscribe: <{{.NotMe}}>"), "invite/template.yaml:2: headers: the value of List-Unsubscribe must be up to 900 printable ASCII characters, without =? and {{"},
		{"a sender to be filled in", invite("invite/template.yaml", "from: '{{.Sender}} <no-reply@acme.example>'"), "invite/template.yaml:1: from: the sender cannot have {{, as it is not filled in"},
		{"a reply to be filled in", invite("invite/template.yaml", "reply_to: '{{.Data.shop}}@acme.example'"), "invite/template.yaml:1: reply_to: the sender cannot have {{"},
		{"a header twice", invite("invite/template.yaml", "headers: {X-A: a, x-a: b}"), "invite/template.yaml:1: headers: x-a is given twice"},
		{"an empty header", invite("invite/template.yaml", "headers: {X-A: ''}"), "invite/template.yaml:1: this key has no value"},
		{"an encoded word", invite("invite/template.yaml", "headers: {X-A: '=?UTF-8?B?YQ==?='}"), "invite/template.yaml:1: headers: the value of X-A"},
		{"a long header", invite("invite/template.yaml", "headers: {X-A: '"+strings.Repeat("a", 901)+"'}"), "invite/template.yaml:1: headers: the value of X-A"},
		{"setting of a wrong type", invite("invite/template.yaml", "critical: very"), "invite/template.yaml:1: it must be true or false"},
		{"HTML saved as UTF-16", invite("invite/en/body.html", "\xff\xfe<\x00p\x00>\x00{{.Code}}"), "invite/en/body.html: is not valid UTF-8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := message.LoadTemplates(test.own, "en")
			if err == nil || !strings.HasPrefix(err.Error(), "template "+test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant template %s…", err, test.want)
			}
		})
	}
}

// A template has its own sender and header fields, and the others do not.
func TestCompose_OwnSenderAndHeaders_OfThatTemplate(t *testing.T) {
	own := invite("invite/template.yaml", "from: 'Müller, Acme <hello@news.acme.example>'\nreply_to: Help <help@acme.example>\n"+
		"headers:\n  X-SES-CONFIGURATION-SET: codes\n  List-Unsubscribe: <https://acme.example/out>\n", "invite/en/subject.txt", "From {{.Sender}}")
	if _, err := message.LoadTemplates(own, "en"); err == nil || !strings.Contains(err.Error(), "with the name in double quotes") {
		t.Errorf("a name with a comma and no quotes: %v", err)
	}
	own["invite/template.yaml"].Data = []byte(strings.Replace(string(own["invite/template.yaml"].Data), "Müller, Acme", `"Müller, Acme"`, 1))
	composer := newComposer(t, "Acme <a@acme.example>", own)
	compose := func(template string) (message.Message, mail.Header) {
		m := must.Get(composer.Compose(message.Request{To: must.Get(address.Parse("alice@example.com", address.Identity{}))(t), Template: template, Code: "123456", ID: "one", Data: map[string]string{"host": "x"}}))(t)
		return m, must.Get(mail.ReadMessage(bytes.NewReader(m.Bytes)))(t).Header
	}
	m, header := compose("invite")
	for name, want := range map[string]string{
		"Reply-To": "Help <help@acme.example>", "X-Ses-Configuration-Set": "codes", "List-Unsubscribe": "<https://acme.example/out>", "To": "<alice@example.com>",
		"Message-Id": "<one@news.acme.example>", "Auto-Submitted": "auto-generated", "Bcc": "",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	from := must.Get(header.AddressList("From"))(t)
	subject := must.Get(new(mime.WordDecoder).DecodeHeader(header.Get("Subject")))(t)
	if from[0].Name != "Müller, Acme" || m.From.String() != "hello@news.acme.example" || subject != "From Müller, Acme" {
		t.Errorf("from %v, envelope %s, subject %q", from, m.From.String(), subject)
	}
	if m, header := compose(""); header.Get("From") != "Acme <a@acme.example>" || m.From.String() != "a@acme.example" || header.Get("Reply-To")+header.Get("List-Unsubscribe") != "" {
		t.Errorf("the default template has %v", header)
	}
}

func TestCritical_EachTemplate_AsItsFileSays(t *testing.T) {
	composer := newComposer(t, "a@acme.example", invite("invite/template.yaml", "critical: true", "logto-forgot-password/template.yaml", "critical: false"), "supabase", "logto")
	for template, want := range map[string]bool{"": false, "code": false, "invite": true, "supabase-recovery": true, "supabase-signup": false, "logto-forgot-password": false} {
		if composer.Critical(template) != want {
			t.Errorf("%q is critical: %t", template, !want)
		}
	}
}

// Two sets of templates have one digest only if they are the same texts.
func TestDigest_OtherTexts_Differs(t *testing.T) {
	digest := func(own fstest.MapFS) [32]byte {
		return newComposer(t, "a@acme.example", own).Digest()
	}
	one := digest(invite())
	if digest(invite()) != one || digest(invite(".data/en/subject.txt", "x", "invite/en/.x", "x", "code/en/.x", "x")) != one {
		t.Error("what is no template counts")
	}
	for _, other := range []fstest.MapFS{
		nil, invite("invite/en/text.txt", "{{.Code}}"), invite("invite/en/expires.txt", "{{.Count}}"), invite("code/en/subject.txt", "Code"),
		invite("invite/template.yaml", "critical: true"), invite("invite/template.yaml", "headers: {X-A: a}"), invite("invite/template.yaml", "from: b@acme.example"),
		invite("invite/en/text.txt", "{{.Code}}\n", "invite/en/body.html", "{{.Code}}"), invite("invite/en/text.txt", "{{.Code}}", "invite/en/body.html", "\n{{.Code}}"),
	} {
		if digest(other) == one {
			t.Errorf("%v is taken for another", other)
		}
	}
}

// Data under another dot is found too, and so are fields of every construct.
func TestCheck_DataInEveryConstruct_Required(t *testing.T) {
	own := invite(
		"invite/en/subject.txt", "{{$.Data.a}}{{with .Data}}{{.b}}{{end}}",
		"invite/en/text.txt", `{{.Code}}{{range .Data}}{{.}}{{end}}{{if .Data.c}}{{.Data.d}}{{end}}{{template "x" .Data.e}}{{define "x"}}{{.}}{{end}}{{(print .Data.f)}}`,
		"invite/en/body.html", `{{.Code}}{{$x := .Data.g}}{{$x}}{{printf "%s" .Data.h | len}}`,
	)
	composer := newComposer(t, "no-reply@acme.example", own)
	request := sampleRequest(t)
	request.Template, request.Data = "invite", map[string]string{}
	for _, key := range strings.Split("abcdefgh", "") {
		want := fmt.Sprintf("data lacks %s, which the template needs", key)
		if wrong := composer.Check(request); len(wrong) != 1 || wrong[0].Error() != want {
			t.Fatalf("got %v, want %s", wrong, want)
		}
		request.Data[key] = "x"
	}
	if _, err := composer.Compose(request); err != nil {
		t.Error(err)
	}
}

func ExampleLoadTemplates() {
	own := fstest.MapFS{
		"code/en/subject.txt": {Data: []byte("Your code for Acme: {{.Code}}\n")},
		"code/fr/subject.txt": {Data: []byte("{{.Code}} est votre code\n")},
		"code/fr/text.txt":    {Data: []byte("Votre code : {{.Code}}{{with .ExpiresIn}}, valable {{.}}{{end}}\n")},
		"code/fr/body.html":   {Data: []byte("<p>Votre code : <b>{{.Code}}</b></p>\n")},
		"code/fr/expires.txt": {Data: []byte(`{{.Count}} {{if eq .Unit "day"}}jour{{else}}{{.Unit}}{{end}}{{if gt .Count 1}}s{{end}}`)},
	}
	_, err := message.LoadTemplates(own, "en")
	fmt.Println(err)

	own["code/fr/text.txt"].Data = []byte("Votre code :\n{{.Cod}}\n")
	_, err = message.LoadTemplates(own, "en")
	fmt.Println(err)
	// Output:
	// <nil>
	// template code/fr/text.txt:2:2: executing "code/fr/text.txt" at <.Cod>: can't evaluate field Cod in type message.fields
}
