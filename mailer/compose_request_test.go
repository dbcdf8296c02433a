package mailer_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer"
)

func TestBadRequestsAreRefused(t *testing.T) {
	tests := []struct {
		name   string
		change func(*mailer.Request)
		kind   mailer.ComposeKind
		field  string
	}{
		{"no recipient", func(r *mailer.Request) { r.To = mailer.Address{} }, mailer.BadField, "email"},
		{"no code", func(r *mailer.Request) { r.Code = "" }, mailer.BadField, "code"},
		{"short code", func(r *mailer.Request) { r.Code = "123" }, mailer.BadField, "code"},
		{"long code", func(r *mailer.Request) { r.Code = "1234567890123" }, mailer.BadField, "code"},
		{"code with CRLF", func(r *mailer.Request) { r.Code = "1234\r\nBcc" }, mailer.BadField, "code"},
		{"code with a sign first", func(r *mailer.Request) { r.Code = "-1234" }, mailer.BadField, "code"},
		{"code beyond ASCII", func(r *mailer.Request) { r.Code = "１２３" }, mailer.BadField, "code"},
		{"no id", func(r *mailer.Request) { r.ID = "" }, mailer.BadField, "id"},
		{"id with CRLF", func(r *mailer.Request) { r.ID = "x>\r\nBcc: a@b.c" }, mailer.BadField, "id"},
		{"id with >", func(r *mailer.Request) { r.ID = "a@b>" }, mailer.BadField, "id"},
		{"long id", func(r *mailer.Request) { r.ID = strings.Repeat("a", 65) }, mailer.BadField, "id"},
		{"negative expiry", func(r *mailer.Request) { r.ExpiresInMS = -1 }, mailer.BadField, "expires_in_ms"},
		{"endless expiry", func(r *mailer.Request) { r.ExpiresInMS = 1 << 62 }, mailer.BadField, "expires_in_ms"},
		{"before time", func(r *mailer.Request) { r.NowMS = -1 }, mailer.BadField, "now"},
		{"after time", func(r *mailer.Request) { r.NowMS = 253402300800000 }, mailer.BadField, "now"},
		{"unknown template", func(r *mailer.Request) { r.Template = "nope" }, mailer.UnknownTemplate, "template"},
		{"template as a path", func(r *mailer.Request) { r.Template = "../code" }, mailer.UnknownTemplate, "template"},
		{"data: too many", func(r *mailer.Request) { r.Data = manyValues(17) }, mailer.BadField, "data"},
		{"data: long value", func(r *mailer.Request) { r.Data = map[string]string{"a": strings.Repeat("ü", 257)} }, mailer.BadField, "data"},
		{"data: CRLF", func(r *mailer.Request) { r.Data = map[string]string{"a": "x\r\nBcc: a@b.c"} }, mailer.BadField, "data"},
		{"data: LF", func(r *mailer.Request) { r.Data = map[string]string{"a": "x\ny"} }, mailer.BadField, "data"},
		{"data: NUL", func(r *mailer.Request) { r.Data = map[string]string{"a": "\x00"} }, mailer.BadField, "data"},
		{"data: C1", func(r *mailer.Request) { r.Data = map[string]string{"a": "\u0085"} }, mailer.BadField, "data"},
		{"data: line separator", func(r *mailer.Request) { r.Data = map[string]string{"a": "\u2028"} }, mailer.BadField, "data"},
		{"data: bidi", func(r *mailer.Request) { r.Data = map[string]string{"a": "\u202e"} }, mailer.BadField, "data"},
		{"data: left to right", func(r *mailer.Request) { r.Data = map[string]string{"a": "\u200e"} }, mailer.BadField, "data"},
		{"data: not UTF-8", func(r *mailer.Request) { r.Data = map[string]string{"a": "\xff"} }, mailer.BadField, "data"},
		{"data: name with a dot", func(r *mailer.Request) { r.Data = map[string]string{"a.b": "x"} }, mailer.BadField, "data"},
		{"data: name with a figure first", func(r *mailer.Request) { r.Data = map[string]string{"9a": "x"} }, mailer.BadField, "data"},
		{"data: empty name", func(r *mailer.Request) { r.Data = map[string]string{"": "x"} }, mailer.BadField, "data"},
		{"data: long name", func(r *mailer.Request) { r.Data = map[string]string{strings.Repeat("a", 65): "x"} }, mailer.BadField, "data"},
	}
	composer := newComposer(t, "no-reply@acme.example", nil, rand.Reader)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := sampleRequest(t)
			test.change(&request)
			for _, err := range []error{composer.Check(request), composeError(composer, request)} {
				var refusal *mailer.ComposeError
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

func composeError(composer *mailer.Composer, request mailer.Request) error {
	_, err := composer.Compose(request)
	return err
}

func manyValues(n int) map[string]string {
	data := map[string]string{}
	for i := range n {
		data[fmt.Sprintf("v%d", i)] = strings.Repeat("ü", 256)
	}
	return data
}
