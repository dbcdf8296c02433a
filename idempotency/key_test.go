package idempotency_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
)

func TestParseKey(t *testing.T) {
	longest := strings.Repeat("k", idempotency.MaxKey)
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
		{`"` + strings.Repeat(`\"`, idempotency.MaxKey) + `"`, strings.Repeat(`"`, idempotency.MaxKey)},

		{``, ""},
		{`""`, ""},
		{`"`, ""},
		{`"a`, ""},
		{`a"`, ""},
		{`"a\"`, ""},
		{`"a\`, ""},
		{`"a\b"`, ""},
		{`"a"b`, ""},
		{`"a" "b"`, ""},
		{`"a", "b"`, ""},
		{`a, b`, ""},
		{`a,b`, ""},
		{`"a";b=1`, ""},
		{`a;b`, ""},
		{`a\b`, ""},
		{`a b`, ""},
		{`"a b"`, ""},
		{"\"a\tb\"", ""},
		{"\"a\x00\"", ""},
		{"\"a\x7f\"", ""},
		{`"ü"`, ""},
		{"\xff", ""},
		{longest + "k", ""},
		{`"` + longest + `k"`, ""},
	}
	for _, tt := range tests {
		got, err := idempotency.ParseKey(tt.field)
		if got != tt.want || errors.Is(err, idempotency.ErrKey) != (tt.want == "") {
			t.Errorf("%q: %q, %v; want %q", tt.field, got, err, tt.want)
		}
	}
}

// Whatever the field has in it, the answer is a key that will do or an error that repeats
// nothing of it, and a key that is written in quotes is read as it is.
func FuzzParseKey(f *testing.F) {
	f.Add(`"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
	f.Add(`"a\"b\\c"`)
	f.Add(`bare`)
	f.Add(`"a", "b"`)
	f.Fuzz(func(t *testing.T, field string) {
		key, err := idempotency.ParseKey(field)
		if err != nil {
			if key != "" || err != idempotency.ErrKey {
				t.Fatalf("%q: %q, %v", field, key, err)
			}
			return
		}
		if err := idempotency.CheckKey(key); err != nil {
			t.Fatalf("%q became %q: %v", field, key, err)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := idempotency.ParseKey(quoted); again != key || err != nil {
			t.Fatalf("%q became %q, and %s became %q, %v", field, key, quoted, again, err)
		}
	})
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, tt := range []struct {
		name idempotency.Name
		want error
	}{
		{idempotency.Name{Caller: "", Key: "k"}, nil},
		{idempotency.Name{Caller: "any text\x00\xff", Key: "k"}, nil},
		{idempotency.Name{Caller: long, Key: long}, nil},
		{idempotency.Name{Caller: long + "x", Key: "k"}, idempotency.ErrCaller},
		{idempotency.Name{Caller: "c", Key: long + "x"}, idempotency.ErrKey},
		{idempotency.Name{}, idempotency.ErrKey},
	} {
		if err := tt.name.Check(); !errors.Is(err, tt.want) {
			t.Errorf("%d and %d bytes: %v, want %v", len(tt.name.Caller), len(tt.name.Key), err, tt.want)
		}
	}
}

// No two names have one text: all names of up to three letters that could be mistaken.
func TestNamesHaveTheirOwnText(t *testing.T) {
	texts := []string{""}
	for first := 0; len(texts[first]) < 3; first++ {
		for _, letter := range "1:2a" {
			texts = append(texts, texts[first]+string(letter))
		}
	}
	seen := map[string]idempotency.Name{}
	for _, caller := range texts {
		for _, key := range texts {
			name := idempotency.Name{Caller: caller, Key: key}
			if other, ok := seen[name.Text()]; ok {
				t.Fatalf("%q and %q are both %q", name, other, name.Text())
			}
			seen[name.Text()] = name
		}
	}
}
