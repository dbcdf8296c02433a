package prober

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/redis/go-redis/v9"
)

const ms = time.Millisecond

func TestMain(m *testing.M) {
	redisx.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// step is a probe, its length, and whether the process was late meanwhile.
type step struct {
	outcome outcome
	takes   time.Duration
	late    bool
	heard   bool // a call was answered before it
}

func TestEvidence_Probes_Decides(t *testing.T) {
	quiet, lateQuiet := step{outcome: silent, takes: 250 * ms}, step{outcome: silent, takes: 250 * ms, late: true}
	for name, tt := range map[string]struct {
		steps []step
		want  State
	}{
		"no probe":                         {nil, Suspected},
		"answered":                         {[]step{{outcome: answered}}, Here},
		"refused":                          {[]step{{outcome: refused}}, Away},
		"refused while late":               {[]step{{outcome: refused, late: true}}, Away},
		"silent once":                      {[]step{quiet}, Suspected},
		"silent twice":                     {[]step{quiet, quiet}, Suspected},
		"silent three times":               {[]step{quiet, quiet, quiet}, Away},
		"silent three times, last late":    {[]step{quiet, quiet, lateQuiet}, Suspected},
		"silent after lateness":            {[]step{quiet, lateQuiet, quiet, quiet}, Suspected},
		"silent long enough after":         {[]step{lateQuiet, quiet, quiet, quiet}, Away},
		"always late":                      {[]step{lateQuiet, lateQuiet, lateQuiet, lateQuiet, lateQuiet}, Suspected},
		"a call was answered":              {[]step{quiet, quiet, {outcome: silent, takes: 250 * ms, heard: true}}, Suspected},
		"quick failures, too short a time": {[]step{{outcome: silent, takes: 100 * ms}, {outcome: silent, takes: 100 * ms}, {outcome: silent, takes: 100 * ms}}, Suspected},
		"no files to ask with":             {[]step{quiet, quiet, {outcome: inconclusive}, quiet}, Suspected},
		"away, then silent":                {[]step{{outcome: refused}, quiet}, Away},
		"away, then late":                  {[]step{{outcome: refused}, lateQuiet}, Away},
		"away, then a call is answered":    {[]step{{outcome: refused}, {outcome: silent, heard: true}}, Away},
		"away, then answered":              {[]step{{outcome: refused}, {outcome: answered}}, Here},
	} {
		t.Run(name, func(t *testing.T) {
			var e evidence
			e.suspect(1)
			now := time.Now()
			for _, s := range tt.steps {
				if s.heard {
					e.heard()
				}
				e.probed(s.outcome, now, now.Add(s.takes), s.late)
				now = now.Add(s.takes)
			}
			if e.state != tt.want {
				t.Errorf("state %v, want %v", e.state, tt.want)
			}
		})
	}
}

func TestLateness_Ticks_Noted(t *testing.T) {
	const bound = 50 * ms
	now := time.Now()
	began, l := now, newLateness(now, bound)
	want := func(what string, since time.Time, late bool, times uint64) {
		t.Helper()
		if got := l.lateSince(since, now); got != late || l.count() != times {
			t.Errorf("%s: late %v, %d times; want %v, %d", what, got, l.count(), late, times)
		}
	}
	want("at first", began, false, 0)
	now = now.Add(tick + bound)
	l.ticked(now)
	want("at the bound", began, false, 0)
	now = now.Add(tick + 400*ms)
	stopped := now
	want("the tick is still missing", began, true, 0)
	l.ticked(now)
	now = now.Add(10 * ms)
	want("after it", now.Add(-lateFor), true, 1)
	want("since later", stopped.Add(1), false, 1)
}

// suspect has a master that is probed by this, with the time of synctest.
func suspect(t *testing.T, probe func() error) *Master {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // is not asked
	p := New(client, "test", 0)
	t.Cleanup(func() { p.Close(); _ = client.Close() })
	m := p.MasterOf("any")
	m.probe = func(context.Context, redis.UniversalClient) error { return probe() }
	m.suspect(1, io.EOF)
	return m
}

func TestMaster_Silent_AwayWithinASecondAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Bool
		m := suspect(t, func() error {
			if answers.Load() {
				return nil
			}
			time.Sleep(250 * ms)
			return context.DeadlineExceeded
		})
		time.Sleep(749 * ms)
		if s := m.State(); s != Suspected {
			t.Errorf("after 749 ms: %v", s)
		}
		time.Sleep(2 * ms)
		if s := m.State(); s != Away {
			t.Errorf("after 751 ms: %v", s)
		}
		answers.Store(true)
		time.Sleep(500 * ms)
		if s := m.State(); s != Here {
			t.Errorf("when it answers again: %v", s)
		}
		answers.Store(false)
		if m.Failed(t.Context(), context.DeadlineExceeded); m.State() != Suspected {
			t.Errorf("after one more failure: %v", m.State())
		}
	})
}

func TestMaster_Refuses_KnownAtOnce(t *testing.T) {
	for _, cause := range []error{io.EOF, fmt.Errorf("asking: %w", redisx.ErrAway)} {
		synctest.Test(t, func(t *testing.T) {
			m := suspect(t, func() error { return syscall.ECONNREFUSED })
			began := time.Now()
			away := m.Failed(t.Context(), cause)
			if took := time.Since(began); !away || took != 0 {
				t.Errorf("%v: away %v after %v", cause, away, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		m := suspect(t, func() error { return syscall.ECONNREFUSED })
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if m.Failed(cancelled, context.Canceled) {
			t.Error("the end of a caller is evidence")
		}
	})
}

// A probe that panics is not answered, and the process goes on.
func TestMaster_ProbePanics_IsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := suspect(t, func() error { panic("probing") })
		time.Sleep(751 * ms)
		if s := m.State(); s != Away || !strings.Contains(fmt.Sprint(m.Cause()), "panic") {
			t.Errorf("state %v, for %v", s, m.Cause())
		}
	})
}

// reply is an error reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestOutcomeOf_Error_Table(t *testing.T) {
	for _, c := range []struct {
		err  error
		want outcome
	}{
		{nil, answered},
		{reply("MOVED 1 127.0.0.1:7001"), answered},
		{reply("ERR unknown"), answered},
		{reply("LOADING Redis is loading the dataset in memory"), refused},
		{reply("READONLY You can't write against a read only replica."), refused},
		{reply("OOM command not allowed"), refused},
		{reply("CLUSTERDOWN The cluster is down"), refused},
		{reply("WRONGPASS invalid"), refused},
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), refused},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), refused},
		{io.EOF, refused},
		{fmt.Errorf("dial: %w", syscall.EMFILE), inconclusive},
		{redis.ErrPoolTimeout, inconclusive},
		{context.DeadlineExceeded, silent},
		{fmt.Errorf("redis: all sentinels specified in configuration are unreachable: %w", syscall.ECONNREFUSED), silent},
	} {
		if got := outcomeOf(c.err); got != c.want {
			t.Errorf("%v: outcome %d, want %d", c.err, got, c.want)
		}
	}
}
