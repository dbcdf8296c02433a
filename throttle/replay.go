package throttle

import "iter"

// Replay puts the sends of a history before a policy, in their order and at their times,
// and yields the verdict on each one that it would have refused. What it refuses does not
// count against those that come after it, as it would not have been recorded.
//
// A history holds only what was admitted under the policy of its time, and no longer than
// that policy's longest window. So a Replay tells what a stricter policy would have cost,
// and nothing of whom a milder one would have let in.
func Replay(p Policy, h History) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		admitted := make(History, 0, len(h))
		for _, send := range h {
			v := Decide(p, admitted, send.At)
			if v.Allowed {
				admitted = append(admitted, send)
			} else if !yield(v) {
				return
			}
		}
	}
}
