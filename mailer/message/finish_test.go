package message

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"
)

// The last check, alone: nothing that reaches it should fail it, so it is
// shown here what it is there for.
func TestCheckOctets(t *testing.T) {
	tests := []struct {
		name, text string
		good       bool
	}{
		{"nothing", "", true},
		{"two lines", "a: b\r\n\r\ntext\t.\r\n", true},
		{"998 octets", strings.Repeat("a", 998) + "\r\n", true},
		{"999 octets", strings.Repeat("a", 999) + "\r\n", false},
		{"no end", "a", false},
		{"bare LF", "a\nb\r\n", false},
		{"LF first", "\na\r\n", false},
		{"bare CR", "a\rb\r\n", false},
		{"CR CR LF", "a\r\r\n", false},
		{"CR at the end", "a\r", false},
		{"NUL", "a\x00\r\n", false},
		{"escape", "a\x1b\r\n", false},
		{"delete", "a\x7f\r\n", false},
		{"eight bits", "a\x80\r\n", false},
		{"UTF-8", "ü\r\n", false},
	}
	for _, test := range tests {
		if err := checkOctets([]byte(test.text)); (err == nil) != test.good {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestFinish_NotAMail_Refused(t *testing.T) {
	const library = "Content-Type: multipart/alternative;\r\n boundary=0000\r\n\r\n--0000\r\na\r\n--0000\r\nb\r\n--0000--\r\n"
	c := &Composer{fromLine: []byte("From: <a@acme.example>\r\n")}
	if out, err := c.finish([]byte(library), Request{}, "subject", "<id>"); err != nil {
		t.Fatalf("%q, %v", out, err)
	}
	for name, test := range map[string]struct{ composed, subject string }{
		"no body":         {"Content-Type: x;\r\n boundary=0\r\n", "subject"},
		"no boundary":     {"Content-Type: x\r\n\r\nbody\r\n", "subject"},
		"eight bits":      {strings.Replace(library, "a\r\n", "\xff\r\n", 1), "subject"},
		"bare LF":         {strings.Replace(library, "a\r\n", "a\n", 1), "subject"},
		"an empty header": {library, ""},
	} {
		if out, err := c.finish([]byte(test.composed), Request{}, test.subject, "<id>"); err == nil {
			t.Errorf("%s: %q", name, out)
		}
	}
	for _, value := range []string{"x\r\nBcc: y", "x\ny", "ü", ""} {
		if out, err := appendHeader(nil, "Subject", value); err == nil {
			t.Errorf("%q: %q", value, out)
		}
	}
}

// A header with encoded words is folded into lines of at most 76 characters, none of which is cut.
func TestAppendHeader_EncodedWords_Folded(t *testing.T) {
	subject := strings.Repeat("验证码 é ", 25)
	line, err := appendHeader(nil, "Subject", headerText(subject))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(line), "\r\n"), "\r\n")
	if len(lines) < 10 {
		t.Errorf("%d lines", len(lines))
	}
	for i, line := range lines {
		if len(line) > 76 || i > 0 && !strings.HasPrefix(line, " =?UTF-8?B?") {
			t.Errorf("line %d is %q", i, line)
		}
		_, word, _ := strings.Cut(line, "=?UTF-8?B?")
		if text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(word, "?=")); err != nil || !utf8.Valid(text) {
			t.Errorf("line %d is %q, %v", i, text, err)
		}
	}
}

func TestHeaderText(t *testing.T) {
	tests := []struct {
		text  string
		plain bool
	}{
		{"123456 is your code", true},
		{"a = b? c", true},
		{"=?UTF-8?Q?=0D=0ABcc?=", false},
		{"x =? y", false},
		{"tab\there", false},
		{"验证码", false},
	}
	for _, test := range tests {
		if got := headerText(test.text); (got == test.text) != test.plain {
			t.Errorf("%q became %q", test.text, got)
		}
	}
}
