package message_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
)

// FuzzCompose hands hostile values to every field and to a template that puts
// data into the subject: what comes out is one email to one recipient, or an
// error that repeats none of it.
func FuzzCompose(f *testing.F) {
	const crlf = "\r\nBcc: victim@example.net\r\n\r\nbody"
	f.Add("alice@example.com", "123456", "code", "en", "a name", "Acme <no-reply@acme.example>", int64(600_000))
	f.Add("alice@example.com", "123456", "greet", "zh-Hans", "阿丽思=?x?=\r\n", "阿克米 <no-reply@acme.example>", int64(0))
	f.Add("alice@example.com"+crlf, "12"+crlf, crlf, crlf, crlf, "A"+crlf+"<a@b.c>", int64(-1))
	f.Add("a@b.c", "123456", "greet", "", "\r\n boundary=00", "\"Doe, J\" <a@b.c>", int64(1))
	f.Add("a@b.c", "123456", "greet", "", "=?UTF-8?Q?=0D=0ABcc:_x?=", "=?UTF-8?B?DQpCY2M6IHhAeS56?= <a@b.c>", int64(1))
	f.Add("a@b.c", "123456", "greet", "", "{{.Code}}<script>--000", "a@b.c", int64(1))
	templates := must(message.LoadTemplates(files(
		"greet/en/subject.txt", "{{.Data.name}}, your code {{.Data.name}}",
		"greet/en/text.txt", "{{.Data.name}} {{.Code}} {{.Email}} {{.Sender}} {{.ExpiresIn}}",
		"greet/en/body.html", `<p title="{{.Data.name}}">{{.Data.name}} {{.Code}} {{.Email}} {{.Sender}}</p>`,
	), "en"))(f)
	f.Fuzz(func(t *testing.T, to, code, template, locale, name, from string, expires int64) {
		sender, err := message.ParseSender(from)
		if err != nil {
			return
		}
		composer := must(message.NewComposer(sender, templates))(t)
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
			checkComposeError(t, composer, request, err)
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

func checkComposeError(t *testing.T, composer *message.Composer, request message.Request, err error) {
	t.Helper()
	var refusal *message.Error
	if !errors.As(err, &refusal) || refusal.Field == "" {
		t.Fatalf("%#v", err)
	}
	if checked := composer.Check(request); checked == nil {
		t.Fatalf("Check let pass what Compose refused: %v", err)
	}
}
