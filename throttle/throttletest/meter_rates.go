package throttletest

import (
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// releaseUnderAChangedRate gives back what was admitted at one rate, at another: each is
// one send, neither more nor less, and the last of all is what is left of it.
func releaseUnderAChangedRate(t *testing.T, open OpenMeter, algorithm string) {
	for _, tt := range []struct {
		name          string
		before, after int // sends a minute
		first, then   int // sends at the start, and after a pause
		pause         int64
		left          int // of sixty
		all           int // so many releases make it empty
	}{
		{"faster", 1, 60, 59, 1, 59_000, 0, 60},
		{"slower", 60, 1, 60, 5, 50_000, 45, 15},
		{"slower, and nearly empty", 60, 1, 10, 1, 9500, 58, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := clocktest.New(start)
			before, after := sixty(algorithm, tt.before), sixty(algorithm, tt.after)
			old := patron{t: t, limiter: open(t, before.meter(t), clock.Now), mailbox: newMailbox("rate")}
			changed := patron{t: t, limiter: open(t, after.meter(t), clock.Now), mailbox: old.mailbox}
			var ids []throttle.ID
			for range tt.first {
				ids = append(ids, old.admit())
			}
			clock.Add(tt.pause)
			for range tt.then {
				ids = append(ids, old.admit())
			}
			for n := range tt.all {
				if left := changed.peek().Tiers()[0].Remaining; left != tt.left+n {
					t.Fatalf("%d left after %d were given back, want %d", left, n, tt.left+n)
				}
				if !changed.release(ids[len(ids)-1-n]) {
					t.Fatalf("send %d from the end was not given back", n)
				}
			}
			for who, by := range map[string]patron{"the old rate": old, "the new rate": changed} {
				if left := by.peek().Tiers()[0].Remaining; left != 60 {
					t.Errorf("%d left by %s when all in it were given back", left, who)
				}
			}
			if changed.release(ids[0]) {
				t.Error("gave back what the bucket was emptied of")
			}
		})
	}
}

// sixty are the numbers of a bucket with room for as many, at a rate of so many a minute.
func sixty(algorithm string, rate int) numbers {
	n := numbers{algorithm: algorithm, tier: throttle.Tier{Name: "minute", Limit: rate, Window: 60_000}, extra: 60}
	if algorithm == leakyBucket {
		n.extra--
	}
	return n
}
