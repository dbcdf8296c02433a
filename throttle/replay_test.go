package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

func historyAt(times ...int64) (h throttle.History) {
	for _, at := range times {
		h = append(h, throttle.Admission{ID: throttle.NewID(), At: at})
	}
	return h
}

func TestReplay(t *testing.T) {
	for _, tt := range []struct {
		name, policy string
		sends        []int64
		want         string // time, limit and wait of each that is refused
	}{
		{"nothing", "minute=1/60s", nil, ""},
		{"far apart", "minute=1/60s", []int64{0, 60_000, 120_000}, ""},
		{"one millisecond too soon", "minute=1/60s", []int64{0, 59_999}, " 59999:minute:1"},
		{"one that is refused makes room", "minute=1/60s", []int64{0, 30_000, 60_000, 90_000}, " 30000:minute:30000 90000:minute:30000"},
		{"at one moment", "minute=2/60s", []int64{5, 5, 5}, " 5:minute:60000"},
		{"the longer tier refuses", "minute=1/60s,hour=2/1h", []int64{0, 60_000, 120_000, 3_600_000}, " 120000:hour:3480000"},
	} {
		got := ""
		for v := range throttle.Replay(policy(t, tt.policy), historyAt(tt.sends...)) {
			got += fmt.Sprintf(" %d:%s:%d", v.Now, v.Limit, v.Wait)
		}
		if got != tt.want {
			t.Errorf("%s: refused%s, want%s", tt.name, got, tt.want)
		}
	}
}

// What a policy has admitted it would admit again, and a caller may stop at any time.
func TestReplayOfItsOwn(t *testing.T) {
	p := policy(t, "short=2/40ms,long=5/300ms")
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var own, all throttle.History
		for now := int64(0); len(all) < 60; now += random.Int64N(30) {
			all = append(all, throttle.Admission{ID: throttle.NewID(), At: now})
			if throttle.Decide(p, own, now).Allowed {
				own = append(own, all[len(all)-1])
			}
		}
		for v := range throttle.Replay(p, own) {
			t.Fatalf("refused at %d by %s what it had admitted", v.Now, v.Limit)
		}
		refused := 0
		for range throttle.Replay(p, all) {
			refused++
		}
		if refused != len(all)-len(own) {
			t.Fatalf("refused %d, want %d", refused, len(all)-len(own))
		}
		for range throttle.Replay(p, all) {
			break
		}
	}
}
