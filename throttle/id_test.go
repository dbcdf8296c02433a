package throttle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// NewID makes valid IDs, unlike each other, of the whole alphabet at each position.
func TestNewID_Many_DifferAndAreValid(t *testing.T) {
	const made = 20_000
	seen := make(map[throttle.ID]bool, made)
	var letters [len(throttle.ID{})][256]bool
	for range made {
		id := throttle.NewID()
		if !id.Valid() || seen[id] {
			t.Fatalf("%q is not valid, or was made twice in %d", id, made)
		}
		seen[id] = true
		for i, c := range id {
			letters[i][c] = true
		}
	}
	for i := range letters {
		for _, c := range idAlphabet {
			if !letters[i][c] {
				t.Errorf("%q never occurs at position %d", c, i)
			}
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, text := range []string{
		"", "ABCDEFGH", "-_-_0189", "azAZ09-_", "ABCDEFG", "ABCDEFGHI", "ABC+EFG/", "ABCDEFG=", "ABCD EFG", "ABCDEFG\x00", "\x00BCDEFGH",
		"字字ab", "@[`{/:.^", "\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := throttle.ParseID(text)
		if valid := len(text) == len(id) && strings.Trim(text, idAlphabet) == ""; !valid {
			if !errors.Is(err, throttle.ErrID) || id != (throttle.ID{}) {
				t.Fatalf("%q: %q, %v", text, id, err)
			}
			return
		}
		if err != nil || id.String() != text || !id.Valid() {
			t.Fatalf("%q reads as %q, valid %v, %v", text, id, id.Valid(), err)
		}
	})
}
