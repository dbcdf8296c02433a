package throttle

import "encoding/binary"

// Algorithm is one way to count sends: [Policy], [FixedWindow], [SlidingWindow],
// [TokenBucket] or [LeakyBucket]. Its methods are pure steps over the state of one key. They
// read no clock and never modify the state that they are given. A nil state is a key without
// a record. A step that changes nothing returns the state that it was given.
//
// The bytes of a state are part of the contract: another program, such as a script in Redis, can take the
// same steps. Each algorithm says what they are. All numbers are big-endian.
//
// # Clocks that step back
//
// If the clock is behind the latest moment on record, such as a Policy's newest send, that moment
// counts instead, and the next admission is recorded at it. So a window never opens early and
// never lasts longer, and [Verdict].RetryAt remains true. A record expires a second after the end
// of its last window, so that a small step back still finds it. After a larger step back it may be
// found or not. If a Policy's newest send is released, its moment no longer counts.
// Sends that it had pushed out of the longest window stay forgotten.
type Algorithm interface {
	// Take admits one send at a.At, or refuses it and changes nothing. A Policy does not
	// charge an id again that is on record.
	Take(state []byte, a Admission) (next []byte, v Verdict)

	// Peek reports what Take would answer.
	Peek(state []byte, now int64) Verdict

	// Release refunds an admission and reports whether it was on record. It needs no clock: a
	// send stays on record after its window, until a later send replaces it or the record
	// expires.
	Release(state []byte, a Admission) (next []byte, released bool)

	// Record adds an admission that was made elsewhere, at its own time, whether or not
	// there is room for it. A time after now counts as now, and one whose window has ended
	// changes nothing.
	Record(state []byte, a Admission, now int64) (next []byte)

	// Expires returns the moment from which a state no longer matters. From then on a limiter
	// passes nil instead.
	Expires(state []byte) int64

	// Form names the format of a state: algorithms with the same form can read each other's
	// states, so that a limit can change and the sends on record still count. The states of
	// different forms are kept apart. The form of a zero value is empty, and no limiter
	// accepts it.
	Form() string

	// Exact reports whether each send is on record with its id, as in a Policy.
	Exact() bool

	// Queues reports whether it holds sends back, as a LeakyBucket does. A queue cannot refund all.
	Queues() bool

	// Window returns for how many milliseconds a send can matter.
	Window() int64

	// String returns the algorithm and its parameters, such as "fixed-window day=50000/24h".
	String() string
}

// grace is how many milliseconds a record is kept after its last window has ended.
const grace = 1000

// newVerdict returns the answer to Peek at now, from the states of all tiers at the moment that
// counts.
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

// maxCounted is the largest limit, burst or queue of a counter.
const maxCounted = 1_000_000_000

// counter is what the algorithms without ids have in common.
type counter struct {
	tier Tier
	form string
}

func newCounter(t Tier) (counter, error) { return counter{tier: t}, t.check(maxCounted) }

// Tier returns the limit and its window.
func (c counter) Tier() Tier { return c.tier }

// Form implements [Algorithm].
func (c counter) Form() string { return c.form }

// Exact implements [Algorithm].
func (c counter) Exact() bool { return false }

// Queues implements [Algorithm].
func (c counter) Queues() bool { return false }

// Window implements [Algorithm].
func (c counter) Window() int64 { return c.window() }

func (c counter) limit() int64  { return int64(c.tier.Limit) }
func (c counter) window() int64 { return c.tier.ms() }

// state returns the state of the tier with used sends that count, and refill milliseconds until
// one fewer does.
func (c counter) state(used, refill int64) TierState {
	t := TierState{Tier: c.tier, Remaining: int(max(0, c.limit()-used)), Refill: refill}
	if t.Remaining == 0 {
		t.Wait = refill
	}
	return t
}

// takeCounted takes from a counter: it records if there is room.
func takeCounted(by Algorithm, state []byte, a Admission) (next []byte, v Verdict) {
	before := by.Peek(state, a.At)
	if !before.Allowed {
		return state, before
	}
	next = by.Record(state, Admission{At: before.At}, before.At)
	v = by.Peek(next, a.At)
	v.Allowed, v.Delay, v.Admission = true, before.Delay, Admission{a.ID, before.At}
	return next, v
}

// readPair reads a state of two numbers: 0 and 0 where there is none.
func readPair(state []byte) (a, b int64) {
	if len(state) != 16 {
		return 0, 0
	}
	return int64(binary.BigEndian.Uint64(state)), int64(binary.BigEndian.Uint64(state[8:]))
}

func writePair(a, b int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(a)), uint64(b))
}

// ms returns the tier's window in milliseconds.
func (t Tier) ms() int64 { return t.Window.Milliseconds() }

// ceilDiv returns a/b rounded up. Neither may be negative.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
