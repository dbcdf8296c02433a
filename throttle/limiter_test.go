package throttle_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

func TestCheckMailbox(t *testing.T) {
	tests := []struct {
		name, mailbox string
		ok            bool
	}{
		{"an address", "alice@example.com", true},
		{"one byte", "a", true},
		{"any bytes", "\x00\xff\n", true},
		{"the longest", strings.Repeat("a", throttle.MaxMailbox), true},
		{"empty", "", false},
		{"one too long", strings.Repeat("a", throttle.MaxMailbox+1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := throttle.CheckMailbox(tt.mailbox)
			if tt.ok && err != nil || !tt.ok && !errors.Is(err, throttle.ErrMailbox) {
				t.Errorf("%v, want accepted %v", err, tt.ok)
			}
		})
	}
}

// The kinds of error are told apart, and none of them speaks of a mailbox by name.
func TestErrorKinds(t *testing.T) {
	kinds := []error{throttle.ErrUnavailable, throttle.ErrMailbox, throttle.ErrID}
	for i, kind := range kinds {
		for j, other := range kinds {
			if errors.Is(kind, other) != (i == j) {
				t.Errorf("%q is %q: %v", kind, other, i != j)
			}
		}
	}
	if !strings.Contains(throttle.ErrMailbox.Error(), strconv.Itoa(throttle.MaxMailbox)) {
		t.Errorf("%q does not name the limit, %d", throttle.ErrMailbox, throttle.MaxMailbox)
	}
	if err := throttle.CheckMailbox(strings.Repeat("alice@example.com", 100)); strings.Contains(err.Error(), "alice") {
		t.Errorf("the error holds the address: %v", err)
	}
}
