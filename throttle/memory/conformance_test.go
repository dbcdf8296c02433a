package memory_test

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func TestMeters(t *testing.T) {
	throttletest.RunMeters(t, throttletest.OneStore(views), 200_000)
}

// views are limiters that count together where their meters are of one form.
func views(_ testing.TB, now func() int64) func(meter.Meter) throttle.Limiter {
	forms := map[string]*memory.Limiter{}
	return func(m meter.Meter) throttle.Limiter {
		if forms[m.Form()] == nil {
			forms[m.Form()] = memory.New(m, memory.Options{Now: now})
		}
		return forms[m.Form()].With(m)
	}
}

func TestTiers(t *testing.T) { throttletest.Run(t, openTiers, 50_000) }

func openTiers(_ testing.TB, p throttle.Policy, now func() int64) throttle.Historian {
	return memory.NewTiers(p, memory.Options{Now: now})
}

func TestTiersWithoutAPolicy(t *testing.T) {
	throttletest.RunZeroPolicy(t, openTiers, func(l throttle.Historian, p throttle.Policy) throttle.Historian {
		return l.(*memory.Tiers).With(p)
	})
	if v, _ := take(t, memory.NewTiers(throttle.Policy{}, memory.Options{}), "key"); len(v.Tiers()) != 3 {
		t.Errorf("new, without a policy: %v", v.Tiers())
	}
}
