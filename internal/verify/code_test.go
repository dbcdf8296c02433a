package verify

import (
	"errors"
	"strings"
	"testing"
)

func TestParseCode_EachForm_ReadOrRefused(t *testing.T) {
	tests := []struct{ typed, want string }{
		{"482913", "482913"},
		{"000000", "000000"},
		{"  482913\r\n", "482913"},
		{"482 913", "482913"},
		{"482-913", "482913"},
		{"4 8 2 9 1 3", "482913"},
		{"482\u00a0913", "482913"},
		{"482\u2013913", "482913"},
		{"\u200b482\u200d913\ufeff", "482913"},
		{"\u202a482913\u202c", "482913"},
		{"４８２９１３", "482913"},
		{"٤٨٢٩١٣", "482913"},
		{"۴۸۲۹۱۳", "482913"},
		{"४८२९१३", "482913"},
		{strings.Repeat(" ", 58) + "482913", "482913"},
	}
	for _, tt := range tests {
		if got, err := ParseCode(tt.typed); got != tt.want || err != nil {
			t.Errorf("%q: %q, %v; want %q", tt.typed, got, err, tt.want)
		}
	}
	for _, typed := range []string{
		"", "48291", "4829130", "482913 482913", "48291a", "48291:", "48291\x00", "48291²", "48291Ⅲ", "48291\xff", "+82913",
		strings.Repeat(" ", 59) + "482913",
	} {
		if got, err := ParseCode(typed); got != "" || !errors.Is(err, ErrCode) {
			t.Errorf("%q: %q, %v", typed, got, err)
		}
	}
}

// Whatever is typed, the result is six ASCII digits or an error that repeats nothing, and a
// code is read as itself.
func FuzzParseCode(f *testing.F) {
	f.Add("482 913")
	f.Add("４８２-９１３\u200b")
	f.Add("48291a")
	f.Fuzz(func(t *testing.T, typed string) {
		code, err := ParseCode(typed)
		if err != nil {
			if code != "" || err != ErrCode {
				t.Fatalf("%q: %q, %v", typed, code, err)
			}
			return
		}
		if len(code) != digits || strings.Trim(code, "0123456789") != "" {
			t.Fatalf("%q became %q", typed, code)
		}
		if again, err := ParseCode(code); again != code || err != nil {
			t.Fatalf("%q became %q and then %q, %v", typed, code, again, err)
		}
	})
}

func TestNewCode_Many_SixDigitsAndDifferent(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		code := NewCode()
		if parsed, err := ParseCode(code); parsed != code || err != nil {
			t.Fatalf("%q is read as %q, %v", code, parsed, err)
		}
		seen[code] = true
	}
	if len(seen) < 990 { // of a million, a thousand meet about once
		t.Errorf("only %d of 1000 differ", len(seen))
	}
}
