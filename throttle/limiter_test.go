package throttle_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

func TestCheckKey(t *testing.T) {
	tests := []struct {
		name, mailbox string
		ok            bool
	}{
		{"an address", "alice@example.com", true},
		{"one byte", "a", true},
		{"any bytes", "\x00\xff\n", true},
		{"the longest", strings.Repeat("a", throttle.MaxKey), true},
		{"empty", "", false},
		{"one too long", strings.Repeat("a", throttle.MaxKey+1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := throttle.CheckKey(tt.mailbox)
			if tt.ok && err != nil || !tt.ok && !errors.Is(err, throttle.ErrKey) {
				t.Errorf("%v, want accepted %v", err, tt.ok)
			}
		})
	}
}

func TestCheckCall(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, tt := range []struct {
		name, key string
		ctx       context.Context
		want      []error
		text      string
	}{
		{"as it should be", "key", context.Background(), []error{nil}, ""},
		{"no key", "", context.Background(), []error{throttle.ErrKey, throttle.ErrUnchanged}, "peek: a key is 1 to 1024 bytes long"},
		{"nobody waits", "key", ended, []error{throttle.ErrUnavailable, throttle.ErrUnchanged, context.Canceled}, "peek: the history is unavailable: context canceled"},
		{"neither", "", ended, []error{throttle.ErrKey}, "peek: a key is 1 to 1024 bytes long"},
	} {
		err := throttle.CheckCall(tt.ctx, "peek", tt.key)
		for _, want := range tt.want {
			if !errors.Is(err, want) || err != nil && err.Error() != tt.text {
				t.Errorf("%s: %v, want %v", tt.name, err, want)
			}
		}
	}
}

// Each call that is handed a wrong id says what it was, and that nothing was changed.
func TestWrongID(t *testing.T) {
	record := throttle.CheckRecord(context.Background(), "key", throttle.Admission{At: 1})
	for doing, err := range map[string]error{"take": throttle.WrongID("take"), "record": record} {
		if !errors.Is(err, throttle.ErrID) || !errors.Is(err, throttle.ErrUnchanged) || err.Error() != doing+": "+throttle.ErrID.Error() {
			t.Errorf("%s: %v", doing, err)
		}
	}
}

// The kinds of error are told apart, and none of them speaks of a mailbox by name. What is
// wrong in itself has changed nothing.
func TestErrorKinds(t *testing.T) {
	kinds := []error{throttle.ErrUnavailable, throttle.ErrUnchanged, throttle.ErrKey, throttle.ErrID}
	for i, kind := range kinds {
		for j, other := range kinds {
			wrong := kind == throttle.ErrKey || kind == throttle.ErrID
			if want := i == j || wrong && other == throttle.ErrUnchanged; errors.Is(kind, other) != want {
				t.Errorf("%q is %q: %v", kind, other, !want)
			}
		}
	}
	if !strings.Contains(throttle.ErrKey.Error(), strconv.Itoa(throttle.MaxKey)) {
		t.Errorf("%q does not name the limit, %d", throttle.ErrKey, throttle.MaxKey)
	}
	if err := throttle.CheckKey(strings.Repeat("alice@example.com", 100)); strings.Contains(err.Error(), "alice") {
		t.Errorf("the error holds the address: %v", err)
	}
}
