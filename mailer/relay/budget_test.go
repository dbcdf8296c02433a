package relay

import (
	"context"
	"testing"
	"time"
)

// A send may take 20 s. In seconds since it came.
func TestBudget_CutShort(t *testing.T) {
	came := time.Now()
	at := func(s float64) time.Time { return came.Add(time.Duration(s * float64(time.Second))) }
	for name, c := range map[string]struct {
		asked, now, until float64
		want              bool
	}{
		"the step's own time ended":             {asked: 1, now: 11, until: 20, want: false},
		"asked late":                            {asked: 19, now: 20, until: 20, want: true},
		"asked with nearly half left":           {asked: 10.001, now: 20, until: 20, want: true},
		"asked with half left":                  {asked: 10, now: 20, until: 20, want: false},
		"silent nearly all the time there was":  {asked: 0, now: 20, until: 20, want: false},
		"a caller in a hurry":                   {asked: 0, now: 2, until: 2, want: true},
		"asked late, and the step's time ended": {asked: 15, now: 19.999, until: 20, want: false},
	} {
		b := budget{ctx: t.Context(), until: at(c.until), whole: 20 * time.Second}
		if got := b.cutShort(at(c.asked), at(c.now)); got != c.want {
			t.Errorf("%s: cut short %v, want %v", name, got, c.want)
		}
	}
}

// The last call is a second before the end, or a tenth of what the mail came with.
func TestBudget_LastCall(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		whole, own time.Duration // own: the caller's deadline, if any
		want       time.Duration
	}{
		"plenty":                   {whole: 15 * time.Second, want: 14 * time.Second},
		"little":                   {whole: 5 * time.Second, want: 4500 * time.Millisecond},
		"the caller has less":      {whole: 15 * time.Second, own: 12 * time.Second, want: 11 * time.Second},
		"the caller is in a hurry": {whole: 15 * time.Second, own: 100 * time.Millisecond, want: 90 * time.Millisecond},
		"the caller has more":      {whole: 15 * time.Second, own: time.Hour, want: 14 * time.Second},
		"the caller is too late":   {whole: 15 * time.Second, own: -time.Second, want: -time.Second},
	} {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if c.own != 0 {
			ctx, cancel = context.WithDeadline(ctx, now.Add(c.own))
		}
		if got := newBudget(ctx, now, c.whole).lastCall.Sub(now); got != c.want {
			t.Errorf("%s: last call after %v, want %v", name, got, c.want)
		}
		cancel()
	}
}
