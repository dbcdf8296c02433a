package message_test

import (
	"mime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/message"
)

func TestParseSender_EachForm_ReadOrRefused(t *testing.T) {
	tests := []struct{ text, name, where string }{
		{"Acme <no-reply@acme.example>", "Acme", "no-reply@acme.example"},
		{"no-reply@ACME.example", "", "no-reply@acme.example"},
		{"<no-reply@acme.example>", "", "no-reply@acme.example"},
		{`"Doe, John" <john@acme.example>`, "Doe, John", "john@acme.example"},
		{`"O\"Neil" <o@acme.example>`, `O"Neil`, "o@acme.example"},
		{"阿克米 <no-reply@acme.example>", "阿克米", "no-reply@acme.example"},
		{"=?UTF-8?Q?M=C3=BCller?= <m@acme.example>", "Müller", "m@acme.example"},
		{"Acme <no-reply@bücher.example>", "Acme", "no-reply@xn--bcher-kva.example"},
	}
	for _, test := range tests {
		sender, err := message.ParseSender(test.text)
		if err != nil || sender.Name != test.name || sender.Address.String() != test.where {
			t.Errorf("%q: %q %q, %v", test.text, sender.Name, sender.Address.String(), err)
		}
	}
}

// What is printable is written so that it can be read as it stands, in quotes where it
// has marks; the rest is encoded, and so is what looks as if it were.
func TestSender_Name_QuotedOrEncoded(t *testing.T) {
	for name, want := range map[string]string{
		"Acme 24":               "Acme 24",
		"Acme, Inc.":            `"Acme, Inc."`,
		"AT&T":                  `"AT&T"`,
		"O'Neil":                `"O'Neil"`,
		`The "Best" \o/`:        `"The \"Best\" \\o/"`,
		"x@y.example> <a@b.cd":  `"x@y.example> <a@b.cd"`,
		"what?= <x":             `"what?= <x"`,
		"é":                     "=?UTF-8?B?w6k=?=",
		"=?UTF-8?Q?x?=":         "=?UTF-8?B?PT9VVEYtOD9RP3g/PQ==?=",
		strings.Repeat(`"`, 64): `"` + strings.Repeat(`\"`, 64) + `"`,
	} {
		sender := message.Sender{Name: name, Address: parse(t, "no-reply@acme.example")}
		composer := must.Get(message.NewComposer(sender, must.Get(message.LoadTemplates(nil, "en"))(t)))(t)
		made := must.Get(composer.Compose(sampleRequest(t)))(t)
		unfolded := strings.ReplaceAll(string(made.Bytes), "\r\n ", " ")
		if line := "\r\nFrom: " + want + " <no-reply@acme.example>\r\n"; !strings.Contains(unfolded, line) {
			t.Errorf("%q: no %q in\n%.300s", name, line, made.Bytes)
		}
		from, err := read(t, made).header.AddressList("From")
		if err != nil || len(from) != 1 || from[0].Name != name || from[0].Address != "no-reply@acme.example" {
			t.Errorf("%q: From is read as %v, %v", name, from, err)
		}
	}
}

// A line with an encoded word in it has 76 characters at most, and no word cuts a character in
// two.
func TestCompose_EncodedHeaders_Folded(t *testing.T) {
	for n := 1; n <= 64; n++ {
		name, subject := strings.Repeat("é", n), strings.TrimSpace(strings.Repeat("验证码 é ", n/2))
		composer := newComposer(t, name+" <no-reply@acme.example>", own("{{.Data.subject}}", "{{.Code}}", "{{.Code}}"))
		request := sampleRequest(t)
		request.Template, request.Data = "own", map[string]string{"subject": subject + "."}
		made := must.Get(composer.Compose(request))(t)
		for line := range strings.SplitSeq(string(made.Bytes), "\r\n") {
			_, word, found := strings.Cut(line, "=?")
			if !found {
				continue
			}
			decoded, err := new(mime.WordDecoder).Decode("=?" + strings.TrimSuffix(word, " <no-reply@acme.example>"))
			if err != nil || len(line) > 76 || !utf8.ValidString(decoded) {
				t.Errorf("with %d characters: %s, %v", n, line, err)
			}
		}
		back := read(t, made)
		from, err := back.header.AddressList("From")
		if err != nil || len(from) != 1 || from[0].Name != name || from[0].Address != "no-reply@acme.example" || subjectOf(t, back) != subject+"." {
			t.Errorf("with %d characters: From is read as %v, %v, and the subject as %q", n, from, err, subjectOf(t, back))
		}
	}
}

func TestParseSender_Bad_Refused(t *testing.T) {
	for _, text := range []string{
		"", "Acme", "Acme <>", "Acme <secret>", "Doe, John <secret@acme.example>", "a@b.c, secret@acme.example",
		"Acme <secret@localhost>", "Acme <secret@acme.example>\r\nBcc: x@y.z", "Acme\r\nBcc: x@y.z <secret@acme.example>",
		"=?UTF-8?Q?a=0D=0ABcc:_x@y.z?= <secret@acme.example>", "=?UTF-8?Q?a=E2=80=AEb?= <secret@acme.example>",
		strings.Repeat("n", 65) + " <secret@acme.example>", "\"\x00\" <secret@acme.example>",
		strings.Repeat("(", 10<<20), `Acme <"secret secret"@acme.example>`, "{{.Name}} <secret@acme.example>", "Acme <secret@[1.2.3.4]>",
	} {
		sender, err := message.ParseSender(text)
		if err == nil || !strings.HasPrefix(err.Error(), "the sender") {
			t.Errorf("%.60q: %v, %v", text, sender, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: the error is %q", text, err)
		}
	}
}
