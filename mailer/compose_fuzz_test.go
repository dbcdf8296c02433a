package mailer_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate/mailer"
)

// FuzzCompose hands hostile values to every field and to a template that puts
// data into the subject: what comes out is one mail to one recipient, or an
// error that repeats none of it.
func FuzzCompose(f *testing.F) {
	const crlf = "\r\nBcc: victim@example.net\r\n\r\nbody"
	f.Add("alice@example.com", "123456", "send-1", "code", "en", "a name", "Acme <no-reply@acme.example>", int64(600_000), int64(0))
	f.Add("alice@example.com", "123456", "send-1", "greet", "zh-Hans", "阿丽思=?x?=\r\n", "阿克米 <no-reply@acme.example>", int64(0), int64(1))
	f.Add("alice@example.com"+crlf, "12"+crlf, "x"+crlf, crlf, crlf, crlf, "A"+crlf+"<a@b.c>", int64(-1), int64(-1))
	f.Add("a@b.c", "123456", "x", "greet", "", "\r\n boundary=00", "\"Doe, J\" <a@b.c>", int64(1), int64(253402300799999))
	f.Add("a@b.c", "123456", "x", "greet", "", "=?UTF-8?Q?=0D=0ABcc:_x?=", "=?UTF-8?B?DQpCY2M6IHhAeS56?= <a@b.c>", int64(1), int64(5))
	f.Add("a@b.c", "123456", "x", "greet", "", "{{.Code}}<script>--000", "a@b.c", int64(1), int64(5))
	templates, err := mailer.LoadTemplates(fstest.MapFS{
		"greet/en/subject.txt": {Data: []byte("{{.Data.name}}, your code {{.Data.name}}")},
		"greet/en/text.txt":    {Data: []byte("{{.Data.name}} {{.Code}} {{.Email}} {{.Sender}} {{.ExpiresIn}}")},
		"greet/en/body.html":   {Data: []byte(`<p title="{{.Data.name}}">{{.Data.name}} {{.Code}} {{.Email}} {{.Sender}}</p>`)},
	}, "en")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, to, code, id, template, locale, name, from string, expires, now int64) {
		sender, err := mailer.ParseSender(from)
		if err != nil {
			return
		}
		composer, err := mailer.NewComposer(sender, templates, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		address, err := mailer.ParseAddress(to, mailer.Identity{})
		if err != nil {
			return
		}
		request := mailer.Request{
			To: address, Template: template, Locale: locale, Code: code, ExpiresInMS: expires,
			Data: map[string]string{"name": name}, ID: id, NowMS: now,
		}
		message, err := composer.Compose(request)
		if err != nil {
			checkComposeError(t, composer, request, err)
			return
		}
		back := read(t, message)
		if message.To != to[:strings.IndexByte(to, '@')]+address.String()[strings.IndexByte(address.String(), '@'):] {
			t.Fatalf("the envelope goes to %q", message.To)
		}
		if list, err := back.header.AddressList("To"); err != nil || len(list) != 1 || list[0].Address != address.String() {
			t.Fatalf("To is read as %v, %v", list, err)
		}
		if list, err := back.header.AddressList("From"); err != nil || len(list) != 1 || list[0].Name != sender.Name || list[0].Address != message.From {
			t.Fatalf("From is read as %v, %v; want %q", list, err, sender.Name)
		}
		if template == "greet" {
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

func checkComposeError(t *testing.T, composer *mailer.Composer, request mailer.Request, err error) {
	t.Helper()
	var refusal *mailer.ComposeError
	if !errors.As(err, &refusal) || refusal.Kind == mailer.NotComposed || refusal.Field == "" {
		t.Fatalf("%#v", err)
	}
	if checked := composer.Check(request); checked == nil {
		t.Fatalf("Check let pass what Compose refused: %v", err)
	}
}
