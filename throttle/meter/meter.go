package meter

import (
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// A Meter is one way to count: [FixedWindow], [SlidingWindow], [TokenBucket] or
// [LeakyBucket]. Most programs make one and hand it to a store. It never changes and may be
// shared. Their New functions make them; the zero value of none is fit for use, and stores
// panic when they are handed one. There can be no others: a store has to know how a meter
// counts, as throttle/cluster has a script for each.
//
// Its methods read no clock and wait for nothing. One that changes a state does so in
// place, and then only where it says so: whoever keeps states lets one call at a time
// have each.
//
// A Meter is a value that holds its numbers by a pointer, so that to ask it copies one word.
// Whether two are equal their String says, and not ==.
type Meter interface {
	// Look says whether one more send is admitted, and changes nothing.
	Look(s *State, now int64) Reading

	// Take admits one send and records it under id, which is Valid, or says no and leaves
	// the state as it was. An id that is on record is admitted again and leaves it, too.
	// changed reports whether there is a new state to keep. The first send of a key, one
	// to a zero state, is always admitted.
	Take(s *State, id throttle.ID, now int64) (r Reading, changed bool)

	// Count admits one send without an id, or says no and leaves the state as it was. The
	// first send of a key is always admitted, and with a yes there is always a new state to
	// keep. The send can neither be repeated nor given back. Only a bucket that remembers one
	// before it remembers it as well, as one of the MaxHeld.
	Count(s *State, now int64) Reading

	// Release gives an admission back as if it had never been there, and reports whether
	// there was one to give back. If not, the state is as it was. A state whose Count
	// has become 0 is the zero State, and need not be kept.
	Release(s *State, id throttle.ID, now int64) bool

	// Used is how many sends count at now.
	Used(s *State, now int64) int

	// Expires is the moment from which the state says nothing any more. Of meters of one
	// form the one whose tier has the lowest limit is the last to say so.
	Expires(s *State) int64

	// Tier is the limit by its name: so many sends in so many milliseconds.
	Tier() throttle.Tier

	// Quota is what the verdicts on a Reading name: the Tier of a window, and what a
	// bucket has room for in the time that it takes to drain.
	Quota() throttle.Tier

	// Reserving is the meter on the same states that leaves the last n sends to
	// others, and says no where only they remain.
	Reserving(n int) (Meter, error)

	// Form says what the numbers in a state mean. Meters of one form can use each
	// other's states: so a limit can be changed and what is on record still counts.
	//
	// The form is the algorithm and the window to the millisecond, and of a SlidingWindow how
	// many milliseconds a part has. The limit, the burst, the queue and the tier's name are not
	// in it, and may change. A bucket counts in parts of a send, as many as its window has
	// milliseconds: so 2/120s is another form than 1/60s, though it is the same rate, and a
	// rate is changed by the limit alone.
	Form() string

	// String names the algorithm and its numbers, such as
	// "fixed-window day=50000/24h". Equal meters have equal texts. Alone of all methods it
	// can be called on a zero value, as who logs an error of a New function may do.
	String() string

	// made reports whether a New function made it.
	made() bool

	// left reports whether a send at this moment has left the window that ends at clock.
	left(at, clock int64) bool

	// record puts a send on record that has not left at the moment that counts, which is
	// clock, and was admitted elsewhere at another, which is not after it.
	record(s *State, id throttle.ID, at, clock int64) (changed bool)
}

// A Reading is what a meter says of one key.
type Reading = throttle.Reading

// Usable reports whether m can be counted by: it is there, and it is no zero value, which
// knows neither a limit nor a window and is not fit for use.
func Usable(m Meter) bool { return m != nil && m.made() }

// nothing is the String of a zero value.
const nothing = "no meter"

func (m *fixedWindow) made() bool   { return m != nil }
func (m *slidingWindow) made() bool { return m != nil }
func (b *bucket) made() bool        { return b != nil }

// MaxLimit is the most sends in a window, and the largest burst or queue.
const MaxLimit = 1_000_000_000

// exact bounds the products of a limit and a window, so that every step is exact in
// the 53 bits that Redis's scripts count with.
const exact = 1 << 52

// check looks at what all meters need of their tier.
func check(t throttle.Tier) error {
	if err := throttle.CheckName(t.Name); err != nil {
		return fmt.Errorf("tier %.32q: %w", t.Name, err)
	}
	if t.Limit < 1 || t.Limit > MaxLimit {
		return fmt.Errorf("tier %s: the limit must be between 1 and %d, not %d", t.Name, MaxLimit, t.Limit)
	}
	if t.Window < 1 || t.Window > throttle.MaxWindow {
		return fmt.Errorf("tier %s: the window must be between 1ms and ten years", t.Name)
	}
	return nil
}

// reserve is the limit that is left without the last n.
func reserve(name string, limit, n int) (int, error) {
	if n < 0 || n >= limit {
		return 0, fmt.Errorf("tier %s: %d cannot be kept back of %d", name, n, limit)
	}
	return limit - n, nil
}
