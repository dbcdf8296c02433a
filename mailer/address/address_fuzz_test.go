package address_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer/address"
)

// dotString is RFC 5321's Dot-string "@" Domain, written down once more without
// the parser's help, for names of two labels or more that do not end in a
// number, and without the marks that route. A = with a ? after it is left to
// looksEncoded.
var dotString = regexp.MustCompile(`^[A-Za-z0-9#$&'*+/=?^_{|}~\x60-]+(\.[A-Za-z0-9#$&'*+/=?^_{|}~\x60-]+)*` +
	`@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

var looksEncoded = regexp.MustCompile(`=.*\?`)

func FuzzParse(f *testing.F) {
	for _, row := range addressRows(f) {
		f.Add(row.input)
	}
	identity := folding(f)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := address.Parse(text, identity)
		if err != nil {
			checkRefusal(t, text, got, err)
			return
		}
		checkWireForm(t, text, got.String())
		again, err := address.Parse(got.String(), identity)
		if err != nil || again != got {
			t.Fatalf("%q parsed again is %q, %v", got.String(), again.String(), err)
		}
		key, err := address.Parse(got.Key(), identity)
		if err != nil || key.Key() != got.Key() || key.String() != got.Key() {
			t.Fatalf("the key %q has the key %q, %v", got.Key(), key.Key(), err)
		}
		upper, err := address.Parse(strings.ToUpper(got.String()), identity)
		if err != nil || upper.Key() != got.Key() {
			t.Fatalf("%q in capitals has the key %q, %v, not %q", got.String(), upper.Key(), err, got.Key())
		}
	})
}

func checkRefusal(t *testing.T, text string, got address.Address, err error) {
	t.Helper()
	if reason, ok := errors.AsType[address.Reason](err); !ok || reason.Error() == "" || !got.IsZero() {
		t.Fatalf("%q: %q, %#v", text, got.String(), err)
	}
	if strictlyValid(text) {
		t.Fatalf("%q is a plain address, and refused: %s", text, err)
	}
}

func checkWireForm(t *testing.T, text, wire string) {
	t.Helper()
	local, _, _ := strings.Cut(wire, "@")
	if !dotString.MatchString(wire) || len(wire) > 254 || len(local) > 64 {
		t.Fatalf("%q went to the wire as %q", text, wire)
	}
	if typed, _, _ := strings.Cut(text, "@"); local != typed {
		t.Fatalf("%q: the local part became %q", text, local)
	}
	if looksEncoded.MatchString(local) {
		t.Fatalf("%q went to the wire as %q, an encoded word", text, wire)
	}
}

// strictlyValid reports whether the grammar alone is enough to know that text
// must be accepted: no punycode to judge, no reserved hyphens, no number last.
func strictlyValid(text string) bool {
	lower := strings.ToLower(text)
	local, domain, _ := strings.Cut(lower, "@")
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	ascii := !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
	return dotString.MatchString(lower) && !looksEncoded.MatchString(local) && ascii && len(text) <= 254 && len(local) <= 64 &&
		!strings.Contains(domain, "--") && strings.Trim(last, "0123456789") != ""
}
