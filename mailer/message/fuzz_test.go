package message_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
)

// FuzzCompose hands hostile values to every field and to a template that puts
// data into the subject: what comes out is one email to one recipient, or an
// error that repeats none of it.
func FuzzCompose(f *testing.F) {
	const crlf = "\r\nBcc: victim@example.net\r\n\r\nbody"
	f.Add("alice@example.com", "123456", "code", "en", "a name", "Acme <no-reply@acme.example>", int64(600_000))
	f.Add("alice@example.com", "123456", "own", "zh-Hans", "阿丽思=?x?=\r\n", "阿克米 <no-reply@acme.example>", int64(0))
	f.Add("alice@example.com"+crlf, "12"+crlf, crlf, crlf, crlf, "A"+crlf+"<a@b.c>", int64(-1))
	f.Add("a@b.c", "123456", "own", "", "\r\n boundary=00", "\"Doe, J\" <a@b.c>", int64(1))
	f.Add("a@b.c", "123456", "own", "", "=?UTF-8?Q?=0D=0ABcc:_x?=", "=?UTF-8?B?DQpCY2M6IHhAeS56?= <a@b.c>", int64(1))
	f.Add("a@b.c", "123456", "own", "", "{{.Code}}<script>--000", "a@b.c", int64(1))
	templates := must.Get(message.LoadTemplates(own(
		"{{.Data.name}}, your code {{.Data.name}}",
		"{{.Data.name}} {{.Code}} {{.Email}} {{.Sender}} {{.ExpiresIn}}",
		`<p title="{{.Data.name}}">{{.Data.name}} {{.Code}} {{.Email}} {{.Sender}}</p>`,
	), "en"))(f)
	f.Fuzz(func(t *testing.T, to, code, template, locale, name, from string, expires int64) {
		sender, err := message.ParseSender(from)
		if err != nil {
			return
		}
		composer := must.Get(message.NewComposer(sender, templates))(t)
		where, err := address.Parse(to, address.Identity{})
		if err != nil {
			return
		}
		request := message.Request{
			To: where, Template: template, Locale: locale, Code: code, ExpiresInMS: expires,
			Data: map[string]string{"name": name}, ID: "send-1",
		}
		made, err := composer.Compose(request)
		if err != nil {
			refusal, refused := errors.AsType[*message.Error](err)
			if checked := composer.Check(request); !refused || refusal.Field == "" || checked == nil {
				t.Fatalf("%#v; Check says %v", err, checked)
			}
			return
		}
		back := read(t, made)
		if made.To.String() != to[:strings.IndexByte(to, '@')]+where.String()[strings.IndexByte(where.String(), '@'):] {
			t.Fatalf("the envelope goes to %q", made.To.String())
		}
		if list, err := back.header.AddressList("To"); err != nil || len(list) != 1 || list[0].Address != where.String() {
			t.Fatalf("To is read as %v, %v", list, err)
		}
		if list, err := back.header.AddressList("From"); err != nil || len(list) != 1 || list[0].Name != sender.Name || list[0].Address != made.From.String() {
			t.Fatalf("From is read as %v, %v; want %q", list, err, sender.Name)
		}
		if template == "own" {
			if want := strings.TrimSpace(name + ", your code " + name); subjectOf(t, back) != want {
				t.Fatalf("the subject is read as %q, want %q", subjectOf(t, back), want)
			}
		}
		if !strings.Contains(back.text, code) || !strings.Contains(back.html, code) {
			t.Fatal("a part lacks the code")
		}
		if strings.Contains(back.html, "<script") {
			t.Fatal("markup got into the HTML")
		}
	})
}

// Whatever is in an operator's template, it stops the start in one line, or makes emails
// that are whole, and does not take for ever.
func FuzzTemplates(f *testing.F) {
	f.Add("{{.Code}}", "{{.Code}} {{.Data.name}}", "<p>{{.Code}}</p>")
	f.Add("{{.Code}}\nBcc: x@y.z", "{{template \"text.txt\" .}}{{.Code}}", "<a href={{.Data.name}}>{{.Code}}")
	f.Add("{{range .Data}}{{.}}{{end}}{{.Code}}", "{{define \"a\"}}{{template \"a\" .}}{{end}}{{template \"a\" .}}", "<script>{{.Code}}</script>{{.Code}}")
	f.Add("{{printf \"%99d\" 1}}{{.Code}}", "{{.Code}}{{with $x := .Data}}{{$x.b}}{{end}}", "<style>{{.Data.name}}</style>{{.Code}}")
	sender := must.Get(message.ParseSender("Acme <no-reply@acme.example>"))(f)
	f.Fuzz(func(t *testing.T, subject, text, body string) {
		began := time.Now()
		defer func() {
			if took := time.Since(began); took > time.Minute {
				t.Errorf("took %v", took)
			}
		}()
		var composer *message.Composer
		templates, err := message.LoadTemplates(own(subject, text, body), "en")
		if err == nil {
			composer, err = message.NewComposer(sender, templates)
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("more than one line: %q", err)
			}
			return
		}
		made, err := composer.Compose(message.Request{
			To: parse(t, "alice@example.com"), Template: "own", Code: "482913", ID: "send-1", Data: map[string]string{"name": "\r\nBcc: x@y.z <script>"},
		})
		if err != nil {
			if refusal := (*message.Error)(nil); !errors.As(err, &refusal) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("%#v", err)
			}
			return
		}
		back := read(t, made)
		if made.To.String() != "alice@example.com" || back.header.Get("Bcc") != "" {
			t.Fatalf("the email goes to %q and %q", made.To.String(), back.header.Get("Bcc"))
		}
	})
}
