package mailer_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer"
)

// dotString is RFC 5321's Dot-string "@" Domain, written down once more without
// the parser's help, for names of two labels or more that do not end in a
// number, and without the marks that route. A = with a ? after it is left to
// looksEncoded.
var dotString = regexp.MustCompile(`^[A-Za-z0-9#$&'*+/=?^_{|}~\x60-]+(\.[A-Za-z0-9#$&'*+/=?^_{|}~\x60-]+)*` +
	`@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

var looksEncoded = regexp.MustCompile(`=.*\?`)

func FuzzParseAddress(f *testing.F) {
	for _, row := range addressRows(f) {
		f.Add(row.input)
	}
	identity := folding(f)
	f.Fuzz(func(t *testing.T, text string) {
		address, err := mailer.ParseAddress(text, identity)
		if err != nil {
			checkRefusal(t, text, address, err)
			return
		}
		checkWireForm(t, text, address.String())
		again, err := mailer.ParseAddress(address.String(), identity)
		if err != nil || again != address {
			t.Fatalf("%q parsed again is %q, %v", address.String(), again.String(), err)
		}
		key, err := mailer.ParseAddress(address.Key(), identity)
		if err != nil || key.Key() != address.Key() || key.String() != address.Key() {
			t.Fatalf("the key %q has the key %q, %v", address.Key(), key.Key(), err)
		}
		upper, err := mailer.ParseAddress(strings.ToUpper(address.String()), identity)
		if err != nil || upper.Key() != address.Key() {
			t.Fatalf("%q in capitals has the key %q, %v, not %q", address.String(), upper.Key(), err, address.Key())
		}
	})
}

func checkRefusal(t *testing.T, text string, address mailer.Address, err error) {
	t.Helper()
	var refusal *mailer.AddressError
	if !errors.As(err, &refusal) || refusal.Reason == "" || !address.IsZero() {
		t.Fatalf("%q: %q, %#v", text, address.String(), err)
	}
	if strictlyValid(text) {
		t.Fatalf("%q is a plain address, and refused: %s", text, refusal.Reason)
	}
}

func checkWireForm(t *testing.T, text, wire string) {
	t.Helper()
	local, domain, _ := strings.Cut(wire, "@")
	if !dotString.MatchString(wire) || len(wire) > 254 || len(local) > 64 || !strings.Contains(domain, ".") {
		t.Fatalf("%q went to the wire as %q", text, wire)
	}
	if typed, _, _ := strings.Cut(text, "@"); local != typed {
		t.Fatalf("%q: the local part became %q", text, local)
	}
	if looksEncoded.MatchString(local) {
		t.Fatalf("%q went to the wire as %q, an encoded word", text, wire)
	}
	if strings.ContainsAny(wire, "\r\n\x00 \t<>\"()[],;:\\%!") {
		t.Fatalf("%q went to the wire as %q", text, wire)
	}
}

// strictlyValid reports whether the grammar alone is enough to know that text
// must be accepted: no punycode to judge, no reserved hyphens, no number last.
func strictlyValid(text string) bool {
	lower := strings.ToLower(text)
	local, domain, _ := strings.Cut(lower, "@")
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	return dotString.MatchString(lower) && !looksEncoded.MatchString(local) && isASCII(text) && len(text) <= 254 && len(local) <= 64 &&
		!strings.Contains(domain, "--") && strings.Trim(last, "0123456789") != ""
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
}
