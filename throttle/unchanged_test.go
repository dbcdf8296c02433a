package throttle_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// That nothing was changed is told through what wraps the error, until somebody knows less;
// and all else that the error says stays as it is.
func TestUnchanged(t *testing.T) {
	cause := throttle.Unavailable("take", &fs.PathError{Op: "open", Path: "disk", Err: fs.ErrPermission})
	for _, tt := range []struct {
		name  string
		err   error
		proof bool
	}{
		{"of which nothing is known", cause, false},
		{"proof", throttle.Unchanged(cause), true},
		{"wrapped", fmt.Errorf("rule mailbox: %w", throttle.Unchanged(cause)), true},
		{"no proof any more", throttle.Unproven(fmt.Errorf("alone: %w", throttle.Unchanged(cause))), false},
		{"and proof again", throttle.Unchanged(throttle.Unproven(throttle.Unchanged(cause))), true},
	} {
		if errors.Is(tt.err, throttle.ErrUnchanged) != tt.proof {
			t.Errorf("%s: proof %v", tt.name, !tt.proof)
		}
		wrong, found := errors.AsType[*fs.PathError](tt.err)
		if !errors.Is(tt.err, throttle.ErrUnavailable) || !errors.Is(tt.err, fs.ErrPermission) || !found || wrong.Path != "disk" {
			t.Errorf("%s: it is no longer what it was: %v", tt.name, tt.err)
		}
	}
	if got := throttle.Unproven(throttle.Unchanged(cause)).Error(); got != cause.Error() {
		t.Errorf("%q, want the words of %q", got, cause)
	}
}
