package message_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer/message"
)

// Whatever is in an operator's template, it stops the start in one line, or makes emails
// that are whole, and does not take for ever.
func FuzzTemplates(f *testing.F) {
	f.Add("{{.Code}}", "{{.Code}} {{.Data.name}}", "<p>{{.Code}}</p>")
	f.Add("{{.Code}}\nBcc: x@y.z", "{{template \"text.txt\" .}}{{.Code}}", "<a href={{.Data.name}}>{{.Code}}")
	f.Add("{{range .Data}}{{.}}{{end}}{{.Code}}", "{{define \"a\"}}{{template \"a\" .}}{{end}}{{template \"a\" .}}", "<script>{{.Code}}</script>{{.Code}}")
	f.Add("{{printf \"%99d\" 1}}{{.Code}}", "{{.Code}}{{with $x := .Data}}{{$x.b}}{{end}}", "<style>{{.Data.name}}</style>{{.Code}}")
	sender := must(message.ParseSender("Acme <no-reply@acme.example>"))(f)
	f.Fuzz(func(t *testing.T, subject, text, body string) {
		began := time.Now()
		defer func() {
			if took := time.Since(began); took > time.Minute {
				t.Errorf("took %v", took)
			}
		}()
		var composer *message.Composer
		templates, err := message.LoadTemplates(files("own/en/subject.txt", subject, "own/en/text.txt", text, "own/en/body.html", body), "en")
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
