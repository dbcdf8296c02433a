package throttle

import "fmt"

// LeakyBucket is a queue that drains at the tier's rate: sends leave at even distances,
// however they arrive.
//
//	admits    while fewer than queue sends wait behind the one that leaves next
//	delays    each send until those before it have left, at limit sends in a window
//	waits     until the first in a full queue has left
//
// Sends that are held back for the verdict's Delay leave one at a time, window/limit apart. If
// the clock has stepped back, Delay counts from the latest moment on record; it is never longer
// than the queue.
//
// Release refunds the newest send only. An earlier send keeps its slot, which passes unused,
// because later sends already have their Delay. If several sends are the newest, in one
// millisecond, Release refunds any of them, and two others can then leave together.
//
// The state and Record are those of a [TokenBucket] whose burst is the queue and one more.
type LeakyBucket struct{ bucket }

// NewLeakyBucket checks the parameters. The queue is how many sends may wait; with 0 a send
// leaves at once or is refused.
func NewLeakyBucket(t Tier, queue int) (LeakyBucket, error) {
	if queue < 0 || queue >= maxCounted {
		return LeakyBucket{}, fmt.Errorf("tier %s: the queue must be 0 to %d sends, not %d", t.Name, maxCounted-1, queue)
	}
	b, err := newBucket("queue", t, queue+1)
	b.queues = true
	return LeakyBucket{b}, err
}
