package idempotency

import (
	"errors"
	"strings"
	"testing"
)

func TestParseKey_EachForm_ReadOrRefused(t *testing.T) {
	longest := strings.Repeat("k", maxKey)
	tests := []struct{ field, want string }{
		{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{`8e03978e-40d5-43dd-bc93-6894a57f9324`, "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{" \t\"a\"\t ", "a"},
		{"  a ", "a"},
		{`"a,b;c=1"`, "a,b;c=1"},
		{`"a\"b\\c"`, `a"b\c`},
		{`order:17/send!#$%&'()*+-.<=>?@[]^_{|}~`, `order:17/send!#$%&'()*+-.<=>?@[]^_{|}~`},
		{`"` + longest + `"`, longest},
		{longest, longest},
		{`"` + strings.Repeat(`\"`, maxKey) + `"`, strings.Repeat(`"`, maxKey)},
	}
	for _, tt := range tests {
		if got, err := ParseKey(tt.field); got != tt.want || err != nil {
			t.Errorf("%q: %q, %v; want %q", tt.field, got, err, tt.want)
		}
	}
	for _, field := range []string{
		``, `""`, `"`, `"a`, `a"`, `"a\"`, `"a\`, `"a\b"`, `"a"b`, // quotes
		`"a" "b"`, `"a", "b"`, `a, b`, `a,b`, `"a";b=1`, `a;b`, // more than one key
		`a\b`, `a b`, `"a b"`, "\"a\tb\"", "\"a\x00\"", "\"a\x7f\"", `"ü"`, "\xff", // bytes
		longest + "k", `"` + longest + `k"`,
	} {
		if got, err := ParseKey(field); got != "" || !errors.Is(err, ErrKey) {
			t.Errorf("%q: %q, %v", field, got, err)
		}
	}
}

// Whatever the field holds, the result is a valid key or an error that repeats nothing of it,
// and a key that is written in quotes is read as it is.
func FuzzParseKey(f *testing.F) {
	f.Add(`"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
	f.Add(`"a\"b\\c"`)
	f.Add(`bare`)
	f.Add(`"a", "b"`)
	f.Fuzz(func(t *testing.T, field string) {
		key, err := ParseKey(field)
		if err != nil {
			if key != "" || err != ErrKey {
				t.Fatalf("%q: %q, %v", field, key, err)
			}
			return
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := ParseKey(quoted); again != key || err != nil {
			t.Fatalf("%q became %q, and %s became %q, %v", field, key, quoted, again, err)
		}
	})
}

func TestName_Text_IsUnique(t *testing.T) {
	seen := map[string]Name{}
	for _, n := range []Name{{"a", "b"}, {"ab", ""}, {"", "ab"}, {"", "1:ab"}, {"1", ":ab"}, {"1:a", "b"}, {"1:ab", ""}, {"11", "a"}, {"1", "1a"}, {"", "11a"}} {
		if other, ok := seen[n.text()]; ok {
			t.Errorf("%q and %q are both %q", n, other, n.text())
		}
		seen[n.text()] = n
	}
}
