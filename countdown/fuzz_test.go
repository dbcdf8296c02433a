package countdown_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/countdown"
)

// Whatever comes in the place of a token is refused with the one error, unless it is
// one that Seal made. Each process of the fuzzer has a token of its own among the
// seeds, so a genuine one is known by what is in it.
func FuzzOpen(f *testing.F) {
	ours := tokens(f, ourSecret)
	token := ours.Seal("alice@example.com", 2000)
	for _, seed := range []string{"", "A", token, token[:56], token + "\n", strings.Repeat("A", 140), "AQ", "\xff="} {
		f.Add(seed, int64(1000))
	}
	f.Fuzz(func(t *testing.T, try string, now int64) {
		got, err := ours.Open(try, now)
		genuine := err == nil && got == "alice@example.com" && now < 2000
		if !genuine && (got != "" || err != countdown.ErrInvalid) {
			t.Errorf("%q at %d: %q, %v", try, now, got, err)
		}
	})
}

// Whatever is sealed comes back whole until it expires.
func FuzzSeal(f *testing.F) {
	ours := tokens(f, ourSecret)
	f.Add("alice@example.com", int64(2000), int64(1999))
	f.Add("", int64(0), int64(0))
	f.Add(strings.Repeat("x", countdown.MaxMailbox+1), int64(1), int64(0))
	f.Fuzz(func(t *testing.T, mailbox string, expires, now int64) {
		token := ours.Seal(mailbox, expires)
		got, err := ours.Open(token, now)
		if len(mailbox) <= countdown.MaxMailbox && now < expires {
			if got != mailbox || err != nil {
				t.Errorf("%q at %d of %d: %q, %v", mailbox, now, expires, got, err)
			}
		} else if got != "" || err != countdown.ErrInvalid {
			t.Errorf("%q at %d of %d was not refused: %q, %v", mailbox, now, expires, got, err)
		}
	})
}
