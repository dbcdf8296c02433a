package apikey

import (
	"strings"
	"testing"
)

func TestParse_Wrong_SaysWhy(t *testing.T) {
	for text, none := range map[string]bool{"": true, "  ": true, "a:b": false, "a:b,c:d": false, "a:b,a:c": false, " a:b , c:d ": false, "web.app_1-x:p:q/+=~!": false} {
		keys, err := Parse(text, nil)
		if err != nil || keys.IsZero() != none {
			t.Errorf("%q: no keys is %t, %v", text, keys.IsZero(), err)
		}
	}
	for text, want := range map[string]string{
		"hunter2":             "key 1 must be written name:secret",
		"a:hunter2,hunter3":   "key 2 must be written name:secret",
		"a:hunter2,":          "key 2 must be written name:secret",
		":hunter2":            "key 1 needs a name of 1 to 64 letters, digits, dots, _ and - before the colon",
		"hun ter2:x":          "key 1 needs a name of 1 to 64 letters, digits, dots, _ and - before the colon",
		"a:":                  "key 1 has no secret after the colon",
		"a:hunter 2":          "key 1 has a secret with a character that is not visible ASCII",
		"a:hünter2":           "key 1 has a secret with a character that is not visible ASCII",
		"a:hunter2,b:hunter2": "key 2 has the secret of a key before it",
		"a:1,b:2,a:3,a:4":     "key 4 has the name of two keys before it",
	} {
		if _, err := Parse(text, nil); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Each of the keys that are read opens with its secret and no other, and an error repeats
// nothing of the text.
func FuzzParseKeys(f *testing.F) {
	for _, seed := range []string{"a:b", "web:s3cret,ops:0ther", " a:b , c:d ", "a", ":b", "a:b,a:c", "a:b,c:b", "a:b:c", "a:\x00", ",", "a:b,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := Parse(text, nil)
		if err != nil {
			if rest := strings.TrimLeft(strings.TrimPrefix(err.Error(), "key "), "0123456789"); !strings.HasPrefix(rest, " must be ") &&
				!strings.HasPrefix(rest, " needs a ") && !strings.HasPrefix(rest, " has ") || len(rest) > 90 || !keys.IsZero() {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if keys.IsZero() {
			return
		}
		for _, pair := range strings.Split(text, ",") {
			name, secret, _ := strings.Cut(strings.TrimSpace(pair), ":")
			if found, ok := keys.Find([]byte(secret)); !ok || found != name {
				t.Fatalf("%q opens as %q, %v", pair, found, ok)
			}
			if _, ok := keys.Find([]byte(secret + " ")); ok {
				t.Fatalf("more than %q opens", secret)
			}
		}
	})
}
