package prober

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

// step is a probe, its length, and whether the process was late meanwhile.
type step struct {
	outcome Outcome
	takes   time.Duration
	late    bool
	heard   bool // a call was answered before it
}

func TestEvidence_Probes_Decides(t *testing.T) {
	silent, lateSilent := step{outcome: Silent, takes: 250 * ms}, step{outcome: Silent, takes: 250 * ms, late: true}
	for name, tt := range map[string]struct {
		steps []step
		want  State
	}{
		"no probe":                         {nil, Suspected},
		"answered":                         {[]step{{outcome: Answered}}, Here},
		"refused":                          {[]step{{outcome: Refused}}, Away},
		"refused while late":               {[]step{{outcome: Refused, late: true}}, Away},
		"silent once":                      {[]step{silent}, Suspected},
		"silent twice":                     {[]step{silent, silent}, Suspected},
		"silent three times":               {[]step{silent, silent, silent}, Away},
		"silent three times, last late":    {[]step{silent, silent, lateSilent}, Suspected},
		"silent after lateness":            {[]step{silent, lateSilent, silent, silent}, Suspected},
		"silent long enough after":         {[]step{lateSilent, silent, silent, silent}, Away},
		"always late":                      {[]step{lateSilent, lateSilent, lateSilent, lateSilent, lateSilent}, Suspected},
		"a call was answered":              {[]step{silent, silent, {outcome: Silent, takes: 250 * ms, heard: true}}, Suspected},
		"quick failures, too short a time": {[]step{{outcome: Silent, takes: 100 * ms}, {outcome: Silent, takes: 100 * ms}, {outcome: Silent, takes: 100 * ms}}, Suspected},
		"no files to ask with":             {[]step{silent, silent, {outcome: Inconclusive}, silent}, Suspected},
		"away, then silent":                {[]step{{outcome: Refused}, silent}, Away},
		"away, then late":                  {[]step{{outcome: Refused}, lateSilent}, Away},
		"away, then a call is answered":    {[]step{{outcome: Refused}, {outcome: Silent, heard: true}}, Away},
		"away, then answered":              {[]step{{outcome: Refused}, {outcome: Answered}}, Here},
	} {
		t.Run(name, func(t *testing.T) {
			var e evidence
			e.suspect()
			now := time.Hour
			for _, s := range tt.steps {
				if s.heard {
					e.heard()
				}
				e.probed(s.outcome, now, now+s.takes, s.late)
				now += s.takes
			}
			if e.state != tt.want {
				t.Errorf("state %v, want %v", e.state, tt.want)
			}
		})
	}
}

func TestLateness_Ticks_Measures(t *testing.T) {
	now := time.Hour
	const mostLate = 50 * ms
	l := NewLateness(func() time.Duration { return now }, mostLate)
	want := func(what string, since time.Duration, late bool, worst time.Duration) {
		t.Helper()
		if got := l.LateSince(since); got != late || l.Worst() != worst {
			t.Errorf("%s: late %v, worst %v; want %v, %v", what, got, l.Worst(), late, worst)
		}
	}
	want("at first", 0, false, 0)
	now += tick + mostLate
	l.ticked()
	want("at the bound", 0, false, mostLate)
	now += tick + 400*ms
	stopped := now
	want("the tick is still missing", 0, true, 400*ms)
	l.ticked()
	now += 10 * ms
	want("after it", now-lateFor, true, 400*ms)
	want("since later", stopped+1, false, 400*ms)
	for now < stopped+2*shownFor {
		now += tick
		l.ticked()
	}
	want("a minute later", stopped+1, false, 0)
}

// start runs a prober whose probe does what next says, under a clock that synctest moves.
func start(t *testing.T, next func(ctx context.Context) Outcome) *Prober {
	began := time.Now()
	l := NewLateness(func() time.Duration { return time.Since(began) }, 50*ms)
	p := New(l, next)
	ctx, cancel := context.WithCancel(context.Background())
	go l.Run(ctx)
	go p.Run(ctx)
	t.Cleanup(cancel)
	return p
}

func TestProber_SilentServer_AwayWithinASecondAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Bool
		p := start(t, func(context.Context) Outcome {
			if answers.Load() {
				return Answered
			}
			time.Sleep(250 * ms)
			return Silent
		})
		time.Sleep(749 * ms)
		if s := p.State(); s != Suspected {
			t.Errorf("after 749 ms: %v", s)
		}
		time.Sleep(2 * ms)
		if s := p.State(); s != Away {
			t.Errorf("after 751 ms: %v", s)
		}
		answers.Store(true)
		time.Sleep(500 * ms)
		if s := p.State(); s != Here {
			t.Errorf("when it answers again: %v", s)
		}
	})
}

func TestProber_Refused_KnownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(context.Context) Outcome { return Refused })
		began := time.Now()
		<-p.Suspect()
		if took := time.Since(began); p.State() != Away || took != 0 {
			t.Errorf("%v after %v", p.State(), took)
		}
	})
}

func TestProber_NoCallAsks_Forgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int32
		p := start(t, func(context.Context) Outcome { probes.Add(1); return Refused })
		<-p.Suspect()
		time.Sleep(forgottenAfter + time.Second)
		before := probes.Load()
		<-p.Suspect() // is no wait when Run has ended
		time.Sleep(time.Minute)
		if p.State() != Here || probes.Load() != before {
			t.Errorf("%v, %d more probes", p.State(), probes.Load()-before)
		}
	})
}
