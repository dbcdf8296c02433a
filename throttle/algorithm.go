package throttle

import (
	"fmt"
	"time"
)

// Algorithm is one way to count sends: [Policy], [FixedWindow], [SlidingWindow],
// [TokenBucket] or [LeakyBucket]. Its methods are pure steps over the state of one key. They
// read no clock, wait for nothing and never modify the state that they are given. A nil
// state is a key without a record.
//
// The bytes of a state are part of the contract, so that a home may let another program,
// such as a script in Redis, take the same steps: each algorithm's file says what they are,
// all numbers big-endian. From expires on, which depends on nothing but the state, a home
// hands in nil. A step that changes nothing returns the state that it was given.
//
// # Clocks that step back
//
// Every record has an earliest moment that can count, such as that of the newest send of a
// Policy. Where the clock is behind it, that moment counts in place of the clock, and the
// next admission is on record at it. So a window never opens early and never lasts longer,
// and [Verdict].RetryAt remains true, also where sends were released in between. A record
// expires a second after the end of its last window, so that a clock that is set back a
// little still finds it; one that steps back further may find what has expired or not.
type Algorithm interface {
	// Take admits one send at a.At, or refuses it and changes nothing. A Policy charges an
	// id that is on record only once.
	Take(state []byte, a Admission) (next []byte, expires int64, v Verdict)

	// Peek reports what Take would answer.
	Peek(state []byte, now int64) Verdict

	// Release gives an admission back and reports whether it was on record. The clock does not
	// matter: a send is on record, also at the end of its window and later, until a later
	// send takes its place or the record expires.
	Release(state []byte, a Admission) (next []byte, expires int64, released bool)

	// Record adds an admission that was made elsewhere, at its own time, whether or not
	// there is room for it. A time ahead of the clock counts as the clock, and one whose
	// window has ended changes nothing.
	Record(state []byte, a Admission, now int64) (next []byte, expires int64)

	// Used is how many sends count at now.
	Used(state []byte, now int64) int

	// Form says what the bytes of a state mean: algorithms of one form can read each
	// other's states, so that a limit can change and the sends on record still count. A
	// home keeps the states of different forms apart. The form of a zero value is empty,
	// and no home accepts it.
	Form() string

	// String is the algorithm and its parameters, such as "fixed-window day=50000/24h".
	String() string
}

const (
	// maxCounted is the largest limit, burst or queue of a counter.
	maxCounted = 1_000_000_000

	// grace is how many milliseconds a record is kept after its last window has ended.
	grace = 1000

	// maxExact bounds the numbers in a state, so that they are exact as doubles, which is
	// what a script in Redis counts with.
	maxExact = 1 << 52
)

// checkCounted checks the tier of a counter.
func checkCounted(t Tier) error {
	if err := checkTierName(t.Name); err != nil {
		return err
	}
	if t.Limit < 1 || t.Limit > maxCounted {
		return fmt.Errorf("tier %s: the limit must be between 1 and %d, not %d", t.Name, maxCounted, t.Limit)
	}
	return t.checkWindow()
}

// ms is the tier's window in milliseconds.
func (t Tier) ms() int64 { return t.Window.Milliseconds() }

// newVerdict is the answer to Peek, from the states of all tiers at the moment that counts.
func newVerdict(now, at int64, tiers ...TierState) Verdict {
	v := Verdict{Now: now, At: at, RetryAt: now, Tiers: tiers}
	for _, t := range tiers {
		// The shortest window is first, so >= names the longer window of two equal waits.
		if t.Wait > 0 && t.Wait >= v.Wait {
			v.Wait, v.Limit = t.Wait, t.Name
		}
	}
	if v.Wait > 0 {
		v.RetryAt = at + v.Wait
	}
	v.Allowed = v.Wait == 0
	return v
}

// admitted is the verdict on a send that is on record now.
func admitted(v Verdict) Verdict {
	v.Allowed = true
	return v
}

// ceilDiv is a/b, rounded up, of numbers that are not negative.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// milliseconds is a length of time that is counted in milliseconds.
func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
