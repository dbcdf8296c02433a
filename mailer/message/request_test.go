package message_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer/message"
)

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
