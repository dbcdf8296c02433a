package message_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer/message"
)

func TestCompose_BadRequest_Refused(t *testing.T) {
	composer := newComposer(t, "no-reply@acme.example", nil)
	refused := func(name, field string, change func(*message.Request)) {
		request := sampleRequest(t)
		change(&request)
		for _, err := range []error{composer.Check(request), composeError(composer, request)} {
			if refusal, ok := errors.AsType[*message.Error](err); !ok || refusal.Field != field {
				t.Errorf("%s: %#v", name, err)
			}
		}
	}
	for _, code := range []string{"", "123", "1234567890123", "1234\r\nBcc", "-1234", "１２３"} {
		refused(code, "code", func(r *message.Request) { r.Code = code })
	}
	for _, template := range []string{"nope", "../code"} {
		refused(template, "template", func(r *message.Request) { r.Template = template })
	}
	for _, value := range []string{strings.Repeat("ü", 2049), "x\r\nBcc: a@b.c", "x\ny", "\x00", "\u0085", "\u2028", "\u202e", "\u200e", "\xff"} {
		refused(value, "data", data("a", value))
	}
	for _, name := range []string{"a.b", "9a", "", strings.Repeat("a", 65)} {
		refused(name, "data", data(name, "x"))
	}
	refused("too many values", "data", func(r *message.Request) { r.Data = manyValues(17) })
	full := sampleRequest(t)
	full.Data = manyValues(15)
	full.Data[strings.Repeat("n", 64)], full.Data["v0"] = "x", "\u2027\u202f"
	full.Code = "abcDEF012345"
	if err := errors.Join(composer.Check(full), composeError(composer, full)); err != nil {
		t.Errorf("a request at every bound: %v", err)
	}
}

// An id that is none ends the email, not the header block.
func TestCompose_IDWithLineEnd_NoMail(t *testing.T) {
	request := sampleRequest(t)
	request.ID = "x>\r\nBcc: a@b.c"
	if err := composeError(newComposer(t, "no-reply@acme.example", nil), request); err == nil {
		t.Error("an email was made")
	}
}

func composeError(composer *message.Composer, request message.Request) error {
	_, err := composer.Compose(request)
	return err
}

func manyValues(n int) map[string]string {
	data := map[string]string{}
	for i := range n {
		data[fmt.Sprintf("v%d", i)] = strings.Repeat("ü", 2048)
	}
	return data
}
