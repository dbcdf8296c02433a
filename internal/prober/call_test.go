package prober

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/redis/go-redis/v9"
)

// watch opens a client with a prober.
func watch(t *testing.T, url string, timeout time.Duration) (redis.UniversalClient, *Prober) {
	t.Helper()
	client := must.Get(redisx.Open(redisx.Options{URL: url, Timeout: timeout}))(t)
	p := New(client, "test", timeout)
	t.Cleanup(func() { p.Close(); _ = client.Close() })
	servertest.Eventually(t, "masters that are here", func() bool {
		return p.TryAll(t.Context()) == nil && !slices.ContainsFunc(p.Masters(), func(m *Master) bool { return m.State() != Here })
	})
	return client, p
}

// A master that hangs is not asked any more after three calls, and is asked as soon as a probe is answered.
func TestHook_MasterHangs_CallsFailAtOnce(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(t *testing.T) (url string, hang, pass func()){
		"stopped": func(t *testing.T) (string, func(), func()) {
			s := redistest.Alone(t)
			return s.URL(), s.Pause, s.Resume
		},
		"no network": func(t *testing.T) (string, func(), func()) {
			proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
			return proxy.URL(), proxy.Swallow, proxy.Pass
		},
		"stopped Cluster": func(t *testing.T) (string, func(), func()) {
			c := redistest.Cluster(t)
			s := c.MasterOf("test:standby:0")
			return c.URL(), s.Pause, s.Resume
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, hang, pass := hang(t)
			client, p := watch(t, url, 400*ms)
			ask := func() error { _, err := tryWrite.Run(t.Context(), client, "test:standby:0"); return err }
			hang()
			if err := ask(); !errors.Is(err, redisx.ErrSilent) {
				t.Fatalf("%v, want silence", err)
			}
			asked := 1
			for range 1000 {
				if err := ask(); errors.Is(err, redisx.ErrSilent) {
					asked++ // before a call that failed was noted, or after this process was late
				} else if !errors.Is(err, redisx.ErrAway) || !redisx.Undone(err) {
					t.Fatalf("%v, want %v", err, redisx.ErrAway)
				}
			}
			if asked > int(2+p.Late())*failedCalls {
				t.Errorf("the server was asked %d times", asked)
			}
			var got *redis.StringCmd
			if _, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error { got = p.Get(t.Context(), "test:standby:0"); return nil }); err == nil || got.Err() == nil {
				t.Errorf("a pipeline was answered: %v, %v", err, got.Err())
			}
			pass()
			servertest.Eventually(t, "an answer", func() bool { return ask() == nil })
		})
	}
}

// A master is known to be gone before a call of a user meets that, and by a cause.
func TestHook_MasterRefuses_AwayAndBack(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	client, p := watch(t, server.URL(), 10*time.Second)
	m := p.MasterOf("any")
	server.Kill()
	_ = client.Get(t.Context(), "key")
	servertest.Eventually(t, "the master to be away", func() bool { return m.State() == Away })
	if err := client.Get(t.Context(), "key").Err(); !errors.Is(err, redisx.ErrAway) || m.Cause() == nil || errors.Is(m.Cause(), redisx.ErrAway) {
		t.Errorf("%v, by the cause %v", err, m.Cause())
	}
	server.Restart()
	began := time.Now()
	servertest.Eventually(t, "an answer", func() bool { return errors.Is(client.Get(t.Context(), "key").Err(), redis.Nil) })
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it was asked again after %v", took)
	}
}

// What takes no writes can still be read.
func TestHook_MasterTakesNoWrites_IsRead(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	client, p := watch(t, server.URL(), 10*time.Second)
	m := p.MasterOf("any")
	must.OK(t, server.Client().ConfigSet(t.Context(), "maxmemory", "1").Err())
	if !m.Failed(t.Context(), m.Try(t.Context())) {
		t.Errorf("a full master is %v", m.State())
	}
	if err := client.Get(t.Context(), "key").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("reading: %v", err)
	}
	server.Kill()
	_ = client.Get(t.Context(), "key")
	if err := client.Get(t.Context(), "key").Err(); !errors.Is(err, redisx.ErrAway) {
		t.Errorf("when it is gone: %v", err)
	}
}

// Sends are scripts that are called by their hash. A master that takes everything but these takes no sends, so it is away.
func TestHook_MasterRunsNoScripts_AwayAndBack(t *testing.T) {
	t.Parallel()
	rights := func(of *redistest.Server, rights ...any) func() {
		return func() {
			must.OK(t, of.Client().Do(t.Context(), append([]any{"ACL", "SETUSER", "default"}, rights...)...).Err())
		}
	}
	for name, lose := range map[string]func(*redistest.Server, *redistest.FaultyProxy) (lose, pass func()){
		"no right to scripts": func(s *redistest.Server, _ *redistest.FaultyProxy) (func(), func()) {
			return rights(s, "-eval", "-evalsha"), rights(s, "+@all")
		},
		"no right to EVALSHA": func(s *redistest.Server, _ *redistest.FaultyProxy) (func(), func()) {
			return rights(s, "-evalsha"), rights(s, "+@all")
		},
		"EVALSHA hangs": func(_ *redistest.Server, p *redistest.FaultyProxy) (func(), func()) {
			return func() { p.DropReplies(math.MaxInt, "evalsha") }, p.Pass
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t)
			proxy := redistest.Proxy(t, server.Addr)
			client, p := watch(t, proxy.URL(), 400*ms)
			m := p.MasterOf("any")
			lose, pass := lose(server, proxy)
			lose()
			_, err := tryWrite.Run(t.Context(), client, "test:standby:0")
			m.Failed(t.Context(), err)
			servertest.Eventually(t, "the master to be away", func() bool { return m.State() == Away })
			pass()
			servertest.Eventually(t, "the master to be here", func() bool { return m.State() == Here })
		})
	}
}

func TestHook_CallersGiveUp_NoEvidence(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	client, p := watch(t, server.URL(), 10*time.Second)
	server.Pause()
	defer server.Kill() // so that no call is waited for
	for range failedCalls {
		brief, cancel := context.WithTimeout(t.Context(), 20*ms)
		_, _ = tryWrite.Run(brief, client, "key")
		_ = client.Get(brief, "key")
		cancel()
	}
	if s := p.MasterOf("any").State(); s != Here {
		t.Errorf("the master is %v", s)
	}
}

// Three calls in a row that fail are enough to make no more, until a probe is answered or this process was late.
func TestMaster_CallsFail_NoMoreUntilAProbe(t *testing.T) {
	for name, tt := range map[string]struct {
		results []error // of calls
		late    bool
		probe   error
		asked   bool // at last
	}{
		"two":              {results: []error{syscall.ECONNRESET, syscall.ECONNRESET}, probe: context.DeadlineExceeded, asked: true},
		"three":            {results: []error{syscall.ECONNRESET, syscall.ECONNRESET, syscall.ECONNRESET}, probe: context.DeadlineExceeded},
		"one was answered": {results: []error{syscall.ECONNRESET, syscall.ECONNRESET, nil, syscall.ECONNRESET}, probe: context.DeadlineExceeded, asked: true},
		"unconfirmed":      {results: []error{redisx.ErrUnconfirmed, redisx.ErrUnconfirmed, redisx.ErrUnconfirmed}, probe: context.DeadlineExceeded, asked: true},
		"probe answered":   {results: []error{syscall.ECONNRESET, syscall.ECONNRESET, syscall.ECONNRESET}, asked: true},
		"late process":     {results: []error{syscall.ECONNRESET, syscall.ECONNRESET, syscall.ECONNRESET}, late: true, probe: context.DeadlineExceeded, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // is not asked
				p := New(client, "test", 0)
				t.Cleanup(func() { p.Close(); _ = client.Close() })
				m := p.MasterOf("any")
				m.probe = func(context.Context, redis.UniversalClient) error { time.Sleep(250 * ms); return tt.probe }
				for _, result := range tt.results {
					_ = m.call(t.Context(), func(context.Context) error { return result })
				}
				if tt.late {
					p.lateness.ticked(time.Now().Add(time.Hour))
				}
				time.Sleep(260 * ms) // one probe
				err := m.call(t.Context(), func(context.Context) error { return nil })
				if asked := err == nil; asked != tt.asked || !asked && fmt.Sprint(err) != "Redis is away: "+syscall.ECONNRESET.Error() {
					t.Errorf("asked %v, %v", asked, err)
				}
			})
		})
	}
}

// When a master is said to be here, calls reach it, though many failed to connect as it went.
func TestHook_MasterIsBack_CallsPassAtOnce(t *testing.T) {
	t.Parallel()
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	client, p := watch(t, proxy.URL(), 10*time.Second)
	m := p.MasterOf("any")
	proxy.Refuse()
	var callers sync.WaitGroup
	for range 200 {
		callers.Go(func() {
			for range 3 {
				_ = client.Get(t.Context(), "key")
			}
		})
	}
	callers.Wait()
	servertest.Eventually(t, "the master to be away", func() bool { return m.State() == Away })
	proxy.Pass()
	for m.State() == Away {
		time.Sleep(ms)
	}
	if err := m.Try(t.Context()); err != nil {
		t.Errorf("the master is here, and a call fails: %v", err)
	}
}
