package message_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/message"
)

// TestCheck_UnsuitableField_Named: what a visitor may have typed is refused before it costs
// anything, also where only the finished text shows that it will not do.
func TestCheck_UnsuitableField_Named(t *testing.T) {
	long := strings.Repeat("x", 256)
	where := strings.Repeat("a", 64) + "@" + strings.Repeat(strings.Repeat("b", 61)+".", 3) + "com"
	for name, c := range map[string]struct {
		subject, text string
		change        func(*message.Request)
		field         string // "": it will do
	}{
		"a long value in the subject": {"{{.Data.name}}", "", data("name", long), "data"},
		"a subject at its bound":      {"{{.Data.name}}", "", data("name", long[:200]), ""},
		"one more":                    {"{{.Data.name}}", "", data("name", long[:201]), "data"},
		"by its index":                {`Hi {{index .Data "name"}}`, "", data("name", long), "data"},
		"within another":              {"{{with .Data}}{{.name}}{{end}}", "", data("name", long), "data"},
		"in a part of the subject":    {`{{define "a"}}{{.Data.name}}{{end}}{{template "a" .}}`, "", data("name", long), "data"},
		"nothing in the subject":      {"{{.Data.name}}", "", data("name", " "), "data"},
		"a long value elsewhere":      {"Hello", "{{.Data.name}}", data("name", long), ""},
		"a long value for nothing":    {"Hello", "", data("name", long), ""},
		"a cut that is too short":     {"Hello", "{{slice .Data.name 0 5}}", data("name", "four"), "data"},
		"a cut that is not":           {"Hello", "{{slice .Data.name 0 5}}", data("name", "fives"), ""},
		"a long address":              {"{{.Email}}", "", func(r *message.Request) { r.To = parse(t, where) }, "email"},
		"a long address elsewhere":    {"Hello", "{{.Email}}", func(r *message.Request) { r.To = parse(t, where) }, ""},
		"a cut of an address":         {"Hello", "{{slice .Email 0 15}}", func(r *message.Request) { r.To = parse(t, "a@example.com") }, "email"},
		"with the time it is valid":   {"{{.Data.name}}{{.ExpiresIn}}", "", data("name", long[:195]), "data"},
	} {
		t.Run(name, func(t *testing.T) {
			composer := newComposer(t, "Acme <no-reply@acme.example>", own(c.subject, "{{.Code}} "+c.text, "<p>{{.Code}}</p>"))
			request := sampleRequest(t)
			request.Template = "own"
			c.change(&request)
			checkRefused(t, composer, request, c.field)
		})
	}
}

// Each wrong field is named at once, and what the template makes of the others is checked too.
func TestCheck_SeveralWrong_AllNamed(t *testing.T) {
	composer := newComposer(t, "no-reply@acme.example", own("{{.Data.name}}", "{{.Code}}", "<p>{{.Code}}"))
	for want, r := range map[string]message.Request{
		"code template data": {Code: "1", Template: "nope", Data: manyValues(17)},
		"code data":          {Code: "1", Template: "own"},
		"data":               {Code: "123456", Template: "own", Data: map[string]string{"name": strings.Repeat("x", 201)}},
		"template":           {Code: "123456", Template: "nope"},
		"":                   {Code: "123456", Template: "own", Data: map[string]string{"name": "Ann"}},
	} {
		var named []string
		for _, wrong := range composer.Check(r) {
			named = append(named, wrong.Field)
		}
		if got := strings.Join(named, " "); got != want {
			t.Errorf("%q are named, want %q", got, want)
		}
	}
}

// checkRefused checks that Check and Compose both name this field, or neither refuses for "".
func checkRefused(t *testing.T, composer *message.Composer, request message.Request, field string) {
	t.Helper()
	_, composed := composer.Compose(request)
	checked := error(nil)
	if wrong := composer.Check(request); len(wrong) > 0 {
		checked = wrong[0]
	}
	for how, err := range map[string]error{"Check": checked, "Compose": composed} {
		refusal, refused := errors.AsType[*message.Error](err)
		switch {
		case field == "" && err != nil:
			t.Errorf("%s: %v", how, err)
		case field != "" && (!refused || refusal.Field != field):
			t.Errorf("%s of %+.100v: %#v, want a bad %s", how, request, err, field)
		case refused && (strings.Contains(err.Error(), "xx") || strings.Contains(err.Error(), "aa")):
			t.Errorf("%s repeats what it was given: %v", how, err)
		}
	}
}

// TestNewComposer_UnsuitableSenderName_Refused: what does not suit it is told before there is a mail.
func TestNewComposer_UnsuitableSenderName_Refused(t *testing.T) {
	for _, c := range []struct {
		subject string
		name    string
		want    string // of the error, "" for none
	}{
		{strings.Repeat("x", 150) + "{{.Sender}}", strings.Repeat("n", 50), ""},
		{strings.Repeat("x", 150) + "{{.Sender}}", strings.Repeat("n", 51), "template own/en/subject.txt: is too long"},
		{"x{{with .Sender}}{{slice . 0 5}}{{end}}", "Acme", "template own/en/subject.txt:1:"},
		{"x{{with .Sender}}{{slice . 0 5}}{{end}}", "", ""},
		{"{{.Code}}", strings.Repeat("é", 64), ""}, // and all that are built in
	} {
		templates := must.Get(message.LoadTemplates(own(c.subject, "{{.Code}}", "{{.Code}}"), "en"))(t)
		sender := must.Get(message.ParseSender(c.name + " <no-reply@acme.example>"))(t)
		_, err := message.NewComposer(sender, templates)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func data(key, value string) func(*message.Request) {
	return func(r *message.Request) { r.Data = map[string]string{key: value} }
}

func TestCompose_BadRequest_Refused(t *testing.T) {
	composer := newComposer(t, "no-reply@acme.example", nil)
	refused := func(field string, change func(*message.Request)) {
		request := sampleRequest(t)
		change(&request)
		checkRefused(t, composer, request, field)
	}
	for _, code := range []string{"", "123", "1234567890123", "1234\r\nBcc", "-1234", "１２３"} {
		refused("code", func(r *message.Request) { r.Code = code })
	}
	for _, template := range []string{"nope", "../code"} {
		refused("template", func(r *message.Request) { r.Template = template })
	}
	for _, value := range []string{strings.Repeat("ü", 2049), "x\r\nBcc: a@b.c", "x\ny", "\x00", "\u0085", "\u2028", "\u202e", "\u200e", "\xff"} {
		refused("data", data("a", value))
	}
	for _, name := range []string{"a.b", "9a", "", strings.Repeat("a", 65)} {
		refused("data", data(name, "x"))
	}
	refused("data", func(r *message.Request) { r.Data = manyValues(17) })
	full := sampleRequest(t)
	full.Data = manyValues(15)
	full.Data[strings.Repeat("n", 64)], full.Data["v0"] = "x", "\u2027\u202f"
	full.Code = "abcDEF012345"
	checkRefused(t, composer, full, "")
}

// An id that is none ends the email, not the header block.
func TestCompose_IDWithLineEnd_NoMail(t *testing.T) {
	request := sampleRequest(t)
	request.ID = "x>\r\nBcc: a@b.c"
	if made, err := newComposer(t, "no-reply@acme.example", nil).Compose(request); err == nil {
		t.Errorf("an email was made:\n%s", made.Bytes)
	}
}

func manyValues(n int) map[string]string {
	data := map[string]string{}
	for i := range n {
		data[fmt.Sprintf("v%d", i)] = strings.Repeat("ü", 2048)
	}
	return data
}
