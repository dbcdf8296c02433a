package throttle_test

import (
	"reflect"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// The text of an algorithm says all of it.
func TestParse_EachAlgorithm_IsTheSame(t *testing.T) {
	all := []throttle.Algorithm{throttle.DefaultPolicy(), must.Get(throttle.NewSlidingWindow(throttle.Tier{Name: "odd", Limit: 7, Window: 1_000_003_000_000}, 7))(t)}
	for _, limit := range []string{"minute=3/60s", "x=1000/7ms", "day=2/24h"} {
		for _, a := range throttletest.Counters(t, limit) {
			all = append(all, a)
		}
	}
	for _, a := range all {
		if parsed, err := throttle.Parse(a.String()); err != nil || !reflect.DeepEqual(parsed, a) {
			t.Errorf("%s: %v, %v", a, parsed, err)
		}
	}
	for _, text := range []string{"", "fixed-window", "sliding-window day=5/1h", "sliding-window day=5/1h in parts of 0 ms", "bucket day=5/1h, bursts of 5", "token-bucket day=5/1h"} {
		if a, err := throttle.Parse(text); err == nil {
			t.Errorf("%q: %s", text, a)
		}
	}
}
