// Package throttletest is the suite that every throttle.Limiter must pass.
//
// Hand [Run] a way to open a limiter and it checks the whole contract: timed
// vectors from an independent oracle, every edge of a wait, idempotence, release and
// reset, a clock that steps back, what a throttle.Recorder records, a race for one mailbox,
// and random histories against a model too naive to be wrong. [RunMeters] does the same
// for limiters that count by a meter, with each algorithm there is. [RunZeroPolicy] is for
// those that make limiters by another policy. Under -short races and random histories have
// a tenth of their length, and [RunAgain] and [RunMetersAgain] do less.
package throttletest

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// Open returns a limiter that keeps to the policy and reads the time from now. It may
// share its store with others: the suite names every mailbox anew.
type Open func(t testing.TB, policy throttle.Policy, now func() int64) throttle.Historian

// Run checks a limiter against the contract, and walks it through random histories for
// that many steps.
func Run(t *testing.T, open Open, steps int) { run(t, open, steps, 1) }

// RunAgain is Run for another way to a limiter whose rule passes Run elsewhere: under -short
// it has every tenth of the vectors.
func RunAgain(t *testing.T, open Open, steps int) {
	every := 1
	if testing.Short() {
		every = shorter
	}
	run(t, open, steps, every)
}

func run(t *testing.T, open Open, steps, every int) {
	t.Run("vectors", func(t *testing.T) { vectors(t, open, every) })
	t.Run("first send", func(t *testing.T) { firstSend(t, open) })
	t.Run("denial changes nothing", func(t *testing.T) { denialChangesNothing(t, open) })
	t.Run("edges of a wait", func(t *testing.T) { edgesOfAWait(t, open) })
	t.Run("longest wait names the limit", func(t *testing.T) { longestWaitNamesTheLimit(t, open) })
	t.Run("take is idempotent", func(t *testing.T) { takeIsIdempotent(t, open) })
	t.Run("release", func(t *testing.T) { release(t, open) })
	t.Run("reset", func(t *testing.T) { reset(t, open) })
	t.Run("history", func(t *testing.T) { history(t, open) })
	t.Run("mailboxes are apart", func(t *testing.T) { mailboxesAreApart(t, open) })
	t.Run("clock steps back", func(t *testing.T) { clockStepsBack(t, open) })
	t.Run("ended context", func(t *testing.T) { endedContext(t, open) })
	t.Run("bad arguments", func(t *testing.T) { badArguments(t, open) })
	t.Run("race for one mailbox", func(t *testing.T) { raceForOneMailbox(t, open) })
	t.Run("record keeps times", func(t *testing.T) { recordKeepsTimes(t, open) })
	t.Run("record is idempotent", func(t *testing.T) { recordIsIdempotent(t, open) })
	t.Run("record what will not do", func(t *testing.T) { recordWhatWillNotDo(t, open) })
	t.Run("record beyond measure", func(t *testing.T) { recordBeyondMeasure(t, open) })
	t.Run("race to record", func(t *testing.T) { raceToRecord(t, open) })
	t.Run("race under a moving clock", func(t *testing.T) { raceUnderAMovingClock(t, open) })
	t.Run("random histories", func(t *testing.T) { Walk(t, open, 1, steps) })
}
