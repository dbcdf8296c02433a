package throttle_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// While a no lasts, who asks is told by it what the history would say: no more and no less,
// up to its last millisecond, and from then on a send is admitted.
func TestARefusalSaysWhatTheHistoryWould(t *testing.T) {
	const seed = 21
	random := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for life := range 2000 {
		p := policy(t, []string{usual, "one=1/1ms", "few=3/60s,more=7/70s", "short=2/100ms,even=2/300ms,long=4/400ms"}[random.IntN(4)])
		var h throttle.History
		now := start
		for range 30 {
			now += random.Int64N(1 + []int64{2, 200, minute, hour}[random.IntN(4)])
			v := throttle.Decide(p, h, now)
			if v.Allowed {
				h = h.With(p, throttle.NewID(), now)
				continue
			}
			refused++
			no := v.Refusal()
			for _, later := range []int64{0, 1, random.Int64N(v.Wait), v.Wait - 1} {
				at := max(now, h.Newest()) + min(later, v.Wait-1)
				want := throttle.Decide(p, h, at)
				var got throttle.Verdict
				p.SpellAgain(&got, no, h, at)
				if !no.Lasts(at) || !no.Holds(unlike(no.IDs), at) || !sameVerdict(got, want) {
					t.Fatalf("seed %d life %d, %d ms after:\n got %s\nwant %s", seed, life, later, spell(got), spell(want))
				}
			}
			for _, at := range []int64{no.Since - 1, no.Until} {
				if no.Lasts(at) || no.Holds(throttle.NewID(), at) {
					t.Fatalf("seed %d life %d: from %d to %d, and it is said to last at %d", seed, life, no.Since, no.Until, at)
				}
			}
			if !throttle.Decide(p, h, no.Until).Allowed {
				t.Fatalf("seed %d life %d: still refused when it ends", seed, life)
			}
			for _, a := range h {
				if no.Holds(a.ID, now) {
					t.Fatalf("seed %d life %d: one that is on record would be refused", seed, life)
				}
			}
		}
	}
	if refused < 10_000 {
		t.Errorf("%d refusals are too few to tell", refused)
	}
}

// unlike is an id that is certainly not one of these.
func unlike(ids throttle.IDs) throttle.ID {
	for {
		if id := throttle.NewID(); !ids.MayHave(id) {
			return id
		}
	}
}

// sameVerdict compares all that can be asked of two verdicts.
func sameVerdict(a, b throttle.Verdict) bool {
	forgottenA, _ := a.ForgottenAt(throttle.ID{})
	forgottenB, _ := b.ForgottenAt(throttle.ID{})
	return a.Allowed == b.Allowed && a.Limit == b.Limit && a.Wait == b.Wait && a.Now == b.Now && a.Delay == b.Delay &&
		a.RetryAt() == b.RetryAt() && a.Sent() == b.Sent() && forgottenA == forgottenB && reflect.DeepEqual(a.Tiers(), b.Tiers())
}
