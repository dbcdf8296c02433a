package throttle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func TestParseID(t *testing.T) {
	tests := []struct {
		name, text string
		ok         bool
	}{
		{"capitals", "ABCDWXYZ", true},
		{"small letters", "abcdwxyz", true},
		{"digits", "01234567", true},
		{"hyphens and underscores", "-_-_-_-_", true},
		{"empty", "", false},
		{"one short", "ABCDEFG", false},
		{"one long", "ABCDEFGHI", false},
		{"a space", "ABCD EFG", false},
		{"a zero byte", "ABCDEFG\x00", false},
		{"the other base64", "ABC+EFG/", false},
		{"padding", "ABCDEFG=", false},
		{"another alphabet of the right length", "字字ab", false},
		{"just outside the ranges", "@[`{/:.^", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, err := throttle.ParseID(tt.text)
			if tt.ok && (err != nil || id.String() != tt.text || !id.Valid()) {
				t.Errorf("%q, valid %v, %v", id, id.Valid(), err)
			}
			if !tt.ok && (!errors.Is(err, throttle.ErrID) || id != throttle.ID{}) {
				t.Errorf("%q, %v; want the zero id and ErrID", id, err)
			}
		})
	}
	if (throttle.ID{}).Valid() {
		t.Error("the zero id is valid")
	}
}

// Every byte in every place of an ID, against the alphabet.
func TestIDValid(t *testing.T) {
	for place := range len(throttle.ID{}) {
		for c := range 256 {
			id := throttle.ID([]byte("AAAAAAAA"))
			id[place] = byte(c)
			if want := strings.IndexByte(idAlphabet, byte(c)) >= 0; id.Valid() != want {
				t.Errorf("byte %q in place %d: valid %v, want %v", byte(c), place, id.Valid(), want)
			}
		}
	}
}

// New IDs are valid, unlike each other, and use the whole alphabet in every place.
func TestNewID(t *testing.T) {
	const made = 20_000
	seen := make(map[throttle.ID]bool, made)
	var letters [len(throttle.ID{})]map[byte]bool
	for range made {
		id := throttle.NewID()
		if !id.Valid() {
			t.Fatalf("%q is not valid", id)
		}
		if seen[id] {
			t.Fatalf("%s was made twice in %d", id, made)
		}
		seen[id] = true
		for place, c := range id {
			if letters[place] == nil {
				letters[place] = map[byte]bool{}
			}
			letters[place][c] = true
		}
	}
	for place, used := range letters {
		if len(used) != len(idAlphabet) {
			t.Errorf("%d characters occur in place %d, want %d", len(used), place, len(idAlphabet))
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, text := range []string{"", "ABCDEFGH", "-_-_0189", "ABCDEFG", "ABCDEFGHI", "ABC+EFG/", "字字ab", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := throttle.ParseID(text)
		want := len(text) == len(id) && strings.Trim(text, idAlphabet) == ""
		if (err == nil) != want || err != nil && (!errors.Is(err, throttle.ErrID) || id != throttle.ID{}) {
			t.Fatalf("%q: %q, %v; want accepted %v", text, id, err, want)
		}
		if err == nil && (id.String() != text || !id.Valid()) {
			t.Fatalf("%q reads as %q, valid %v", text, id, id.Valid())
		}
	})
}
