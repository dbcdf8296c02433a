package throttle

import (
	"encoding/binary"
	"fmt"
)

// TokenBucket holds as many tokens as its burst. Each send takes one, and they come back
// evenly at the tier's rate: with minute=60/60s one a second.
//
//	admits  while a whole token is left
//	waits   until the missing part of a token has come back, at limit tokens in a window
//
// In any stretch of time never more than the burst and what comes back in it, so up to the
// burst at once, also at the end of a window.
//
// Release refunds what cannot have come back by itself before a later send: a send that
// none came after is refunded in full, and of an earlier one the part of a token that the
// rate does not return between the two. So it never admits more than was promised.
//
// Record takes a token at the send's own time, where no later send is on record, and else at
// the time of the latest; never more than there are. A send that is older than a whole bucket
// takes to fill changes nothing. Sends that are recorded together should be oldest first.
//
// The state is 16 bytes: 8 of the latest moment and 8 of the tokens that were missing then,
// in parts of a token: one has as many parts as the window has milliseconds, so that limit
// parts come back in each millisecond and every step is in whole numbers.
type TokenBucket struct{ bucket }

// NewTokenBucket checks the parameters; a burst of 0 is the tier's limit.
func NewTokenBucket(t Tier, burst int) (TokenBucket, error) {
	if burst == 0 {
		burst = t.Limit
	}
	b, err := newBucket(t, burst)
	return TokenBucket{b}, err
}

// Take implements [Algorithm].
func (b TokenBucket) Take(state []byte, a Admission) (next []byte, v Verdict) {
	return takeCounted(b, state, a.At)
}

// Form implements [Algorithm].
func (b TokenBucket) Form() string { return b.form("bucket-%d", b.window()) }

// String implements [Algorithm].
func (b TokenBucket) String() string {
	return fmt.Sprintf("token-bucket %s, bursts of %d", b.tier, b.room)
}

// bucket is what a TokenBucket and a LeakyBucket have in common: a level that rises by one
// send with each admission and falls at the tier's rate.
type bucket struct {
	counter
	room int // sends
}

// maxLevel bounds the levels, so that they are exact as doubles, which is what a script in
// Redis counts with.
const maxLevel = 1 << 52

func newBucket(t Tier, room int) (bucket, error) {
	c, err := newCounter(t)
	switch {
	case err != nil:
		return bucket{}, err
	case room < 1 || room > maxCounted:
		return bucket{}, fmt.Errorf("tier %s: there must be room for 1 to %d sends, not %d", t.Name, maxCounted, room)
	case maxLevel/t.ms() <= int64(max(room, t.Limit)):
		return bucket{}, fmt.Errorf("tier %s: the window is too long for this limit", t.Name)
	}
	return bucket{counter: c, room: room}, nil
}

// Room is how many sends an empty bucket admits at once.
func (b bucket) Room() int { return b.room }

func (b bucket) full() int64 { return int64(b.room) * b.window() }

// bucketLevel is the state of a bucket: how full it was at its latest moment.
type bucketLevel struct{ at, level int64 }

func readLevel(state []byte) (l bucketLevel) {
	if len(state) != 16 {
		return l
	}
	return bucketLevel{
		at:    int64(binary.BigEndian.Uint64(state)),
		level: int64(binary.BigEndian.Uint64(state[8:])),
	}
}

func (l bucketLevel) bytes() []byte {
	state := binary.BigEndian.AppendUint64(nil, uint64(l.at))
	return binary.BigEndian.AppendUint64(state, uint64(l.level))
}

// drain is the bucket at a later moment.
func (b bucket) drain(l bucketLevel, at int64) bucketLevel {
	if passed := at - l.at; passed < ceilDiv(l.level, b.limit()) { // else the product could overflow
		return bucketLevel{at: at, level: l.level - passed*b.limit()}
	}
	return bucketLevel{at: at}
}

// current is the bucket at the moment that counts.
func (b bucket) current(state []byte, now int64) bucketLevel {
	l := readLevel(state)
	return b.drain(l, max(now, l.at))
}

// Peek implements [Algorithm]. Its tier is what the bucket has room for, in the time in which
// a full one drains.
func (b bucket) Peek(state []byte, now int64) Verdict {
	l := b.current(state, now)
	free, refill := max(0, b.full()-l.level), int64(0)
	if l.level > 0 {
		refill = ceilDiv(b.window()-free%b.window(), b.limit())
	}
	all := counter{Tier{Name: b.tier.Name, Limit: b.room, Window: milliseconds(ceilDiv(b.full(), b.limit()))}}
	used := ceilDiv(l.level, b.window()) // the send that drains counts as a whole one
	v := newVerdict(now, l.at, all.state(used, refill))
	v.Sent = int(used)
	return v
}

// Release implements [Algorithm]. It takes out of the bucket what is certainly left of a
// send: that cannot have drained by more than the rate drains until the latest moment.
func (b bucket) Release(state []byte, a Admission) (next []byte, released bool) {
	l := readLevel(state)
	left := b.drain(bucketLevel{at: a.At, level: b.window()}, l.at).level
	if a.At > l.at || left == 0 || l.level == 0 {
		return state, false
	}
	l.level = max(0, l.level-left)
	return l.bytes(), true
}

// Record implements [Algorithm].
func (b bucket) Record(state []byte, a Admission, now int64) (next []byte) {
	l := readLevel(state)
	at := min(a.At, max(now, l.at))
	switch {
	case at < 0 || at < l.at && b.drain(bucketLevel{at: at, level: b.full()}, l.at).level == 0:
		return state
	case at > l.at:
		l = b.drain(l, at)
	}
	l.level = min(l.level+b.window(), b.full())
	return l.bytes()
}

// Expires implements [Algorithm]: after all has drained, or one send would have, where less
// than that is left.
func (b bucket) Expires(state []byte) int64 {
	l := readLevel(state)
	return l.at + ceilDiv(max(l.level, b.window()), b.limit()) + grace
}
