package outage

import (
	"errors"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// What failed together and alone changed nothing only where both errors say so.
func TestBothHaveToProve(t *testing.T) {
	doubt := errors.New("not heard")
	proof := throttle.Unchanged(doubt)
	for _, tt := range []struct {
		together, alone error
		proof           bool
	}{
		{proof, proof, true}, {proof, doubt, false}, {doubt, proof, false}, {doubt, doubt, false},
	} {
		err := both(tt.together, tt.alone)
		if errors.Is(err, throttle.ErrUnchanged) != tt.proof || !errors.Is(err, doubt) {
			t.Errorf("%#v and %#v: %v, proof %v", tt.together, tt.alone, err, !tt.proof)
		}
	}
}
