package throttle

import (
	"fmt"
	"time"
)

// bucket is what a TokenBucket and a LeakyBucket have in common: a level that rises by one
// send with each admission and falls at the tier's rate.
type bucket struct {
	counter
	room   int  // sends
	queues bool // it is a LeakyBucket
}

// maxLevel bounds the levels, so that they are exact as doubles, which is what a script in
// Redis counts with.
const maxLevel = 1 << 52

func newBucket(form string, t Tier, room int) (bucket, error) {
	c, err := newCounter(t)
	switch {
	case err != nil:
		return bucket{}, err
	case room < 1 || room > maxCounted:
		return bucket{}, fmt.Errorf("tier %s: there must be room for 1 to %d sends, not %d", t.Name, maxCounted, room)
	case maxLevel/t.ms() <= int64(max(room, t.Limit)):
		return bucket{}, fmt.Errorf("tier %s: the window is too long for this limit", t.Name)
	}
	c.form = fmt.Sprintf("%s-%d", form, c.window())
	return bucket{counter: c, room: room}, nil
}

// Room returns how many sends an empty bucket admits at once.
func (b bucket) Room() int { return b.room }

func (b bucket) full() int64 { return int64(b.room) * b.window() }

// bucketLevel is the state of a bucket: how full it was at its latest moment.
type bucketLevel struct{ at, level int64 }

func readLevel(state []byte) bucketLevel {
	at, level := readPair(state)
	return bucketLevel{at, level}
}

func (l bucketLevel) bytes() []byte { return writePair(l.at, l.level) }

// drain returns the bucket at a later moment.
func (b bucket) drain(l bucketLevel, at int64) bucketLevel {
	if passed := at - l.at; passed < ceilDiv(l.level, b.limit()) { // else the product could overflow
		return bucketLevel{at: at, level: l.level - passed*b.limit()}
	}
	return bucketLevel{at: at}
}

func (b bucket) Take(state []byte, a Admission) (next []byte, v Verdict) {
	return takeCounted(b, state, a)
}

// Peek implements [Algorithm]. In the verdict's tier the limit is Room, and the window is the time
// in which all of it becomes free.
func (b bucket) Peek(state []byte, now int64) Verdict {
	l := readLevel(state)
	l = b.drain(l, max(now, l.at))
	free, refill := b.full()-l.level, int64(0) // below 0 where another limit admitted more
	if free > 0 {
		free %= b.window()
	}
	if l.level > 0 {
		refill = ceilDiv(b.window()-free, b.limit())
	}
	all := counter{tier: Tier{Name: b.tier.Name, Limit: b.room, Window: time.Duration(b.Window()) * time.Millisecond}}
	used := ceilDiv(l.level, b.window()) // the send that drains counts as a whole one
	v := newVerdict(now, l.at, all.state(used, refill))
	v.Sent = int(used)
	if b.queues && v.Allowed {
		v.Delay = ceilDiv(l.level, b.limit()) // until all in the queue have left
	}
	return v
}

// Release implements [Algorithm]. It refunds as much of a send as the rate cannot have freed by
// the latest moment on record. A [LeakyBucket] refunds its newest send only.
func (b bucket) Release(state []byte, a Admission) (next []byte, released bool) {
	l := readLevel(state)
	left := b.drain(bucketLevel{at: a.At, level: b.window()}, l.at).level
	if a.At > l.at || b.queues && a.At < l.at || left == 0 || l.level == 0 {
		return state, false
	}
	l.level = max(0, l.level-left)
	return l.bytes(), true
}

func (b bucket) Record(state []byte, a Admission, now int64) (next []byte) {
	l := readLevel(state)
	at := min(a.At, max(now, l.at))
	switch {
	case at < 0 || at < l.at && b.drain(bucketLevel{at: at, level: b.full()}, l.at).level == 0:
		return state
	case at > l.at:
		l = b.drain(l, at)
	}
	l.level = max(l.level, min(l.level+b.window(), b.full()))
	return l.bytes()
}

// Expires implements [Algorithm]: a second after all of the limit is free again. A level below one
// send counts as one send.
func (b bucket) Expires(state []byte) int64 {
	l := readLevel(state)
	return l.at + ceilDiv(max(l.level, b.window()), b.limit()) + grace
}

// Queues implements [Algorithm].
func (b bucket) Queues() bool { return b.queues }

// Window implements [Algorithm]: the time in which a full bucket becomes empty.
func (b bucket) Window() int64 { return ceilDiv(b.full(), b.limit()) }

func (b bucket) String() string {
	if b.queues {
		return fmt.Sprintf("leaky-bucket %s, a queue of %d", b.tier, b.room-1)
	}
	return fmt.Sprintf("token-bucket %s, bursts of %d", b.tier, b.room)
}
