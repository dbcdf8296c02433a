package message_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
)

func TestCompose_BadRequest_Refused(t *testing.T) {
	tests := []struct {
		name   string
		change func(*message.Request)
		kind   message.Kind
		field  string
	}{
		{"no recipient", func(r *message.Request) { r.To = address.Address{} }, message.BadField, "email"},
		{"no code", func(r *message.Request) { r.Code = "" }, message.BadField, "code"},
		{"short code", func(r *message.Request) { r.Code = "123" }, message.BadField, "code"},
		{"long code", func(r *message.Request) { r.Code = "1234567890123" }, message.BadField, "code"},
		{"code with CRLF", func(r *message.Request) { r.Code = "1234\r\nBcc" }, message.BadField, "code"},
		{"code with a sign first", func(r *message.Request) { r.Code = "-1234" }, message.BadField, "code"},
		{"code beyond ASCII", func(r *message.Request) { r.Code = "１２３" }, message.BadField, "code"},
		{"no id", func(r *message.Request) { r.ID = "" }, message.BadField, "id"},
		{"id with CRLF", func(r *message.Request) { r.ID = "x>\r\nBcc: a@b.c" }, message.BadField, "id"},
		{"id with >", func(r *message.Request) { r.ID = "a@b>" }, message.BadField, "id"},
		{"long id", func(r *message.Request) { r.ID = strings.Repeat("a", 65) }, message.BadField, "id"},
		{"negative expiry", func(r *message.Request) { r.ExpiresInMS = -1 }, message.BadField, "expires_in_ms"},
		{"endless expiry", func(r *message.Request) { r.ExpiresInMS = 1 << 62 }, message.BadField, "expires_in_ms"},
		{"before time", func(r *message.Request) { r.NowMS = -1 }, message.BadField, "now"},
		{"after time", func(r *message.Request) { r.NowMS = 253402300800000 }, message.BadField, "now"},
		{"unknown template", func(r *message.Request) { r.Template = "nope" }, message.UnknownTemplate, "template"},
		{"template as a path", func(r *message.Request) { r.Template = "../code" }, message.UnknownTemplate, "template"},
		{"data: too many", func(r *message.Request) { r.Data = manyValues(17) }, message.BadField, "data"},
		{"data: long value", func(r *message.Request) { r.Data = map[string]string{"a": strings.Repeat("ü", 2049)} }, message.BadField, "data"},
		{"data: CRLF", func(r *message.Request) { r.Data = map[string]string{"a": "x\r\nBcc: a@b.c"} }, message.BadField, "data"},
		{"data: LF", func(r *message.Request) { r.Data = map[string]string{"a": "x\ny"} }, message.BadField, "data"},
		{"data: NUL", func(r *message.Request) { r.Data = map[string]string{"a": "\x00"} }, message.BadField, "data"},
		{"data: C1", func(r *message.Request) { r.Data = map[string]string{"a": "\u0085"} }, message.BadField, "data"},
		{"data: line separator", func(r *message.Request) { r.Data = map[string]string{"a": "\u2028"} }, message.BadField, "data"},
		{"data: bidi", func(r *message.Request) { r.Data = map[string]string{"a": "\u202e"} }, message.BadField, "data"},
		{"data: left to right", func(r *message.Request) { r.Data = map[string]string{"a": "\u200e"} }, message.BadField, "data"},
		{"data: not UTF-8", func(r *message.Request) { r.Data = map[string]string{"a": "\xff"} }, message.BadField, "data"},
		{"data: name with a dot", func(r *message.Request) { r.Data = map[string]string{"a.b": "x"} }, message.BadField, "data"},
		{"data: name with a figure first", func(r *message.Request) { r.Data = map[string]string{"9a": "x"} }, message.BadField, "data"},
		{"data: empty name", func(r *message.Request) { r.Data = map[string]string{"": "x"} }, message.BadField, "data"},
		{"data: long name", func(r *message.Request) { r.Data = map[string]string{strings.Repeat("a", 65): "x"} }, message.BadField, "data"},
	}
	composer := newComposer(t, "no-reply@acme.example", nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := sampleRequest(t)
			test.change(&request)
			for _, err := range []error{composer.Check(request), composeError(composer, request)} {
				var refusal *message.Error
				if !errors.As(err, &refusal) || refusal.Kind != test.kind || refusal.Field != test.field {
					t.Errorf("%#v", err)
				}
			}
		})
	}
	if err := composer.Check(sampleRequest(t)); err != nil {
		t.Errorf("a good request: %v", err)
	}
	full := sampleRequest(t)
	full.Data = manyValues(15)
	full.Data[strings.Repeat("n", 64)] = "x"
	full.Data["v0"] = "\u2027\u202f"
	full.ExpiresInMS, full.NowMS = 100*366*24*3600*1000, 253402300799999
	full.Code, full.ID = "abcDEF012345", strings.Repeat("a-_9", 16)
	if _, err := composer.Compose(full); err != nil {
		t.Errorf("a request at every bound: %v", err)
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
