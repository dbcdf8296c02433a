package meter

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

func TestQuick(t *testing.T) {
	tier := throttle.Tier{Name: "minute", Limit: 3, Window: 60_000}
	f, _ := NewFixedWindow(tier)
	sl, _ := NewSlidingWindow(tier, 0)
	tb, _ := NewTokenBucket(tier, 0)
	lb, _ := NewLeakyBucket(tier, 2)
	for _, m := range []Meter{f, sl, tb, lb} {
		t.Log(m, m.Form())
		var s State
		now := int64(1_800_000_030_500)
		for i := range 12 {
			id := throttle.NewID()
			v, ch := m.Take(&s, id, now)
			t.Log(i, now-1_800_000_000_000, v.Allowed, ch, v.Wait, v.Delay, v.Tiers(), s.Count, s.Parts, len(s.Held))
			if i == 4 {
				t.Log("release", m.Release(&s, s.Held[len(s.Held)-1].ID, now), s.Count)
			}
			now += 7000
		}
	}
}
