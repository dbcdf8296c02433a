package mailer

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
)

// TestWhoseTimeEnded: a send may take 20 s. In seconds since it came.
func TestWhoseTimeEnded(t *testing.T) {
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
		p := patience{ctx: t.Context(), until: at(c.until), whole: 20 * time.Second}
		if got := p.cutShort(at(c.asked), at(c.now)); got != c.want {
			t.Errorf("%s: cut short %v, want %v", name, got, c.want)
		}
	}
}

// TestOutOfTimeIsNotJudged: at no step, RCPT included: it would be taken for a
// sign of health.
func TestOutOfTimeIsNotJudged(t *testing.T) {
	now := time.Now()
	p := patience{ctx: t.Context(), until: now, whole: time.Minute}
	for step, otherwise := range map[Step]breaker.Outcome{
		StepConnect: breaker.Failed, StepTLS: breaker.Failed, StepBanner: breaker.Failed, StepEHLO: breaker.Failed,
		StepAUTH: breaker.Failed, StepRSET: breaker.Failed, StepMAIL: breaker.Failed, StepRCPT: breaker.Reached,
		StepDATA: breaker.Failed, StepContent: breaker.Failed, StepFinalDot: breaker.Failed,
	} {
		for _, err := range []error{os.ErrDeadlineExceeded, context.DeadlineExceeded} {
			for asked, want := range map[time.Time]breaker.Outcome{now: breaker.NotJudged, now.Add(-time.Minute): otherwise} {
				failure := &SendError{Outcome: Unavailable, Step: step, Err: p.cause(asked, err)}
				if got := judgement(t.Context(), failure); got != want {
					t.Errorf("%s, asked %v ago: judged %d, want %d", step, now.Sub(asked), got, want)
				}
			}
		}
	}
	hungUp := &SendError{Outcome: Unavailable, Step: StepMAIL, Err: p.cause(now, errHungUp)}
	if got := judgement(t.Context(), hungUp); got != breaker.Failed || !errors.Is(hungUp, errHungUp) {
		t.Errorf("hung up as time ended: judged %d, %v, want the relay's failure", got, hungUp)
	}
}

// TestLastCall: a second before the end, or a tenth of what the mail came with.
func TestLastCall(t *testing.T) {
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
		if got := newPatience(ctx, now, c.whole).lastCall().Sub(now); got != c.want {
			t.Errorf("%s: last call after %v, want %v", name, got, c.want)
		}
		cancel()
	}
}

// TestStandingInLine: to the last call at a relay after which there is none to ask.
func TestStandingInLine(t *testing.T) {
	var r Relays
	for range 3 {
		rule := Breaker{Failures: 1, Cooldown: time.Hour}.withDefaults()
		r.relays = append(r.relays, &relay{circuit: rule.circuit(func() int64 { return 0 }, func(bool) {})})
	}
	rest := func(i int) { r.relays[i].circuit.Settle(r.relays[i].circuit.Ask(), breaker.Failed) }
	p := newPatience(t.Context(), time.Now(), time.Hour)
	third := time.Now().Add(20 * time.Minute)
	for _, c := range []struct {
		rests int // which relay, from now on; the first rests for nobody
		short [3]bool
	}{
		{0, [3]bool{true, true, false}}, {1, [3]bool{true, true, false}}, {2, [3]bool{}},
	} {
		rest(c.rests)
		for i, short := range c.short {
			until := r.inLine(p, i).leavesLine()
			if !short && !until.Equal(p.lastCall()) || short && until.Sub(third).Abs() > time.Minute {
				t.Errorf("with %d resting relays, at relay %d: in line until %v of %v", c.rests+1, i, until, p.until)
			}
		}
	}
}
