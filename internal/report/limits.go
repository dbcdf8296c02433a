package report

import (
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
)

// Limits are the states of tiers, shortest window first.
type Limits []Limit

// Limit is the state of one tier. Its waits count from the report's Now.
type Limit struct {
	Name      string
	Max       int
	Window    int64
	Remaining int
	Wait      int64 // until one more is admitted
	Refill    int64 // until Remaining grows
	partition string
}

// LimitsOf returns the tiers of a verdict, which count by a partition: a keyed hash of what they count
// by, or nothing if there is but one.
func LimitsOf(v *throttle.Verdict, partition string) Limits {
	behind := v.RetryAt - v.Now - v.Wait // where the clock has stepped back
	all := make(Limits, len(v.Tiers))
	for i, t := range v.Tiers {
		all[i] = Limit{t.Name, t.Limit, t.Window.Milliseconds(), t.Remaining, t.Wait, t.Refill, partition}
		if t.Wait > 0 {
			all[i].Wait += behind
		}
		if t.Refill > 0 {
			all[i].Refill += behind
		}
	}
	return all
}

// MarshalJSON implements json.Marshaler.
func (all Limits) MarshalJSON() ([]byte, error) { return all.append(nil), nil }

func (all Limits) append(b []byte) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		l, o := &all[i], wire.Object(b[len(b):])
		o.String("name", l.Name)
		o.Int("limit", int64(l.Max))
		o.Int("window_ms", l.Window)
		o.Int("remaining", int64(l.Remaining))
		o.Int("wait_ms", l.Wait)
		b = append(b, o.End()...)
	}
	return append(b, ']')
}

// full names those limits that are reached.
func (all Limits) full() []string {
	names := []string{}
	for i := range all {
		if all[i].Remaining <= 0 {
			names = append(names, all[i].Name)
		}
	}
	return names
}
