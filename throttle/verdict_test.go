package throttle_test

import (
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

func TestVerdictTiers(t *testing.T) {
	v := throttle.Decide(policy(t, "day=3/24h,minute=1/60s"), sends(0, hour), start+hour+second)
	want := []throttle.Standing{
		{Tier: throttle.Tier{Name: "minute", Limit: 1, Window: minute}, Remaining: 0, Wait: 59 * second},
		{Tier: throttle.Tier{Name: "day", Limit: 3, Window: day}, Remaining: 1, Wait: 0},
	}
	if got := v.Tiers(); !slices.Equal(got, want) {
		t.Errorf("tiers %v, want %v", got, want)
	}
	mine := []throttle.Standing{{Tier: throttle.Tier{Name: "mine"}}}
	if got := v.AppendTiers(mine); !slices.Equal(got, append(mine, want...)) {
		t.Errorf("appended %v, want what was there and then %v", got, want)
	}
}

// What a caller does to the tiers it was given changes no later answer.
func TestVerdictTiersAreTheCallers(t *testing.T) {
	v := throttle.Decide(throttle.DefaultPolicy(), nil, start)
	mine := v.Tiers()
	mine[0].Name, mine[0].Limit = "changed", 99
	if got := v.Tiers()[0]; got.Name != "minute" || got.Limit != 1 {
		t.Errorf("a caller changed the verdict's tier to %v", got)
	}
}

func TestZeroVerdict(t *testing.T) {
	var v throttle.Verdict
	if v.Allowed || v.RetryAt() != 0 || len(v.Tiers()) != 0 {
		t.Errorf("the zero verdict is a yes or has tiers: %s", spell(v))
	}
}
