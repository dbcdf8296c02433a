package throttletest

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

func beginMeter(t testing.TB, open OpenMeter, algorithm string) *twin {
	t.Helper()
	return newTwin(t, open, NewClock(start+20_500), usualNumbers(algorithm))
}

// firstMetered also holds the model to what is written down.
func firstMetered(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	first := map[string][2]string{
		fixedWindow:   {"yes  0 [minute 5 0]", "yes  0 [minute 4 0]"},
		slidingWindow: {"yes  0 [minute 5 0]", "yes  0 [minute 4 0]"},
		tokenBucket:   {"yes  0 [minute 5 0]", "yes  0 [minute 4 0]"},
		leakyBucket:   {"yes  0 [minute 5 0]", "yes  0 [minute 4 0]"},
	}[algorithm]
	expect(t, w.peek(), first[0])
	expect(t, w.take(throttle.NewID()), first[1])
}
