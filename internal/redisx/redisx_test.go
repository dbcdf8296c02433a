package redisx_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/redis/go-redis/v9"
)

const (
	patient = 20 * time.Second // for tests that are not about time, on a busy machine
	short   = 400 * time.Millisecond
	late    = 2 * time.Second // no call of a short client takes so long, also on a busy machine
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	redisx.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func open(t testing.TB, o redisx.Options) redis.UniversalClient {
	t.Helper()
	client := must.Get(redisx.Open(o))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// count counts its runs.
var count = redisx.NewScript(`return redis.call('INCR', KEYS[1])`, func(any) bool { return true })

func run(client redis.UniversalClient, key string) (int64, error) {
	n, err := count.Run(ctx, client, key)
	runs, _ := n.(int64)
	return runs, err
}

// answers waits until the client is answered, and returns how often the script has run.
func answers(t testing.TB, client redis.UniversalClient, key string) int64 {
	t.Helper()
	return redistest.Healed(t, func() (int64, error) { return run(client, key) })
}

// Also a client that repeats other commands sends a script once.
func TestScript_ReplyLost_RunsOnce(t *testing.T) {
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	for name, client := range map[string]redis.UniversalClient{
		"redisx": open(t, redisx.Options{URL: proxy.URL(), Timeout: patient}),
		"plain":  redis.NewClient(&redis.Options{Addr: proxy.Addr, MaxRetries: 3}),
	} {
		t.Cleanup(func() { _ = client.Close() })
		if n, err := run(client, name); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		proxy.CutReplies(1, "evalsha")
		if _, err := run(client, name); err == nil {
			t.Errorf("%s: no error", name)
		}
		if n, err := run(client, name); n != 3 || err != nil {
			t.Errorf("%s: run %d, %v; want 3", name, n, err)
		}
	}
}

// A slot moves under a script, which follows it and runs once each time.
func TestScript_SlotMoves_RunsOnceAtEachStep(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	for name, confirm := range map[string]int{"plain": 0, "confirmed": 1} {
		t.Run(name, func(t *testing.T) {
			client := open(t, redisx.Options{URL: servers.URL(), Timeout: patient, Confirm: confirm})
			key, fresh := "{"+name+"}", "{"+name+"}fresh"
			next := func(key string, want int64) {
				t.Helper()
				if n, err := run(client, key); n != want || err != nil {
					t.Fatalf("run %d, %v; want %d", n, err, want)
				}
			}
			next(key, 1)
			from := servers.MasterOf(key)
			to := servers.Another(from)
			servers.BeginMigration(key, from, to)
			next(key, 2)   // still there
			next(fresh, 1) // ASK, and the script is not loaded
			next(fresh, 2)
			servers.MoveKeys(key, from, to)
			next(key, 3) // ASK
			servers.FinishMigration(key, from, to)
			next(key, 4) // MOVED
			next(fresh, 3)
		})
	}
}

// Whatever hangs, each of many calls at once ends in time, also the first of a client.
func TestCall_ServerHangs_EndsInTime(t *testing.T) {
	warmAndCold := func(t *testing.T, url string, hang func(warm redis.UniversalClient)) {
		warm := open(t, redisx.Options{URL: url, Timeout: short})
		answers(t, warm, "key")
		hang(warm)
		allEnd(t, open(t, redisx.Options{URL: url, Timeout: short}))
	}
	t.Run("standalone", func(t *testing.T) {
		server := redistest.Alone(t)
		warmAndCold(t, server.URL(), func(warm redis.UniversalClient) { server.Pause(); allEnd(t, warm) })
	})
	t.Run("Cluster", func(t *testing.T) {
		servers := redistest.Cluster(t)
		warmAndCold(t, servers.URL(), func(warm redis.UniversalClient) {
			for _, s := range append(servers.Masters, servers.Replicas...) {
				s.Pause()
			}
			allEnd(t, warm)
		})
	})
	t.Run("Sentinel", func(t *testing.T) {
		servers := redistest.Sentinel(t, 1)
		warmAndCold(t, servers.URL(), func(warm redis.UniversalClient) {
			for _, s := range servers.Sentinels {
				s.Pause()
			}
			answers(t, warm, "key")
		})
	})
	t.Run("network with TLS", func(t *testing.T) {
		proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
		proxy.Swallow()
		allEnd(t, open(t, redisx.Options{URL: strings.Replace(proxy.URL(), "redis", "rediss", 1), Timeout: short}))
	})
}

func allEnd(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			begin := time.Now()
			_, err := run(client, "key")
			if took := time.Since(begin); err == nil || took > late {
				t.Errorf("call %d: %v after %v", i, err, took)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the end of a call's time is taken for the caller's: %v", err)
			}
		})
	}
	calls.Wait()
}

// seen is a hook that notes the context of each command.
type seen struct {
	mu  sync.Mutex
	all map[redis.Cmder]context.Context
}

func (s *seen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *seen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.mu.Lock()
		s.all[cmd] = ctx
		s.mu.Unlock()
		return next(ctx, cmd)
	}
}

func (s *seen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestCall_TwoCommands_HaveOneEnd(t *testing.T) {
	client, seen := open(t, redisx.Options{URL: redistest.Alone(t).URL(), Timeout: patient}), &seen{all: map[redis.Cmder]context.Context{}}
	client.AddHook(seen)
	end := func(ctx context.Context) time.Time {
		cmd := client.Ping(ctx)
		must.OK(t, cmd.Err())
		end, _ := seen.all[cmd].Deadline()
		return end
	}
	call := redisx.Call(ctx)
	if first, second := end(call), end(call); first.IsZero() || first != second {
		t.Errorf("the ends are %v and %v", first, second)
	}
}

// A trace, for example, is a value of a context.
func TestCall_ValuesOfItsContext_ReachNoOtherCommand(t *testing.T) {
	client, seen := open(t, redisx.Options{URL: redistest.Alone(t).URL(), Timeout: patient}), &seen{all: map[redis.Cmder]context.Context{}}
	client.AddHook(seen)
	type caller struct{}
	var calls sync.WaitGroup
	for i := range 50 {
		calls.Go(func() { client.Echo(context.WithValue(ctx, caller{}, fmt.Sprint(i)), i) })
	}
	calls.Wait()
	for cmd, ctx := range seen.all {
		if cmd.Name() != "echo" {
			continue
		}
		if of := ctx.Value(caller{}); of != fmt.Sprint(cmd.Args()[1]) {
			t.Errorf("%v has the values of caller %v", cmd.Args(), of)
		}
	}
}

// Callers that give up say nothing of the server.
func TestCall_CallersGiveUp_IsNotSilence(t *testing.T) {
	server := redistest.Alone(t)
	client := open(t, redisx.Options{URL: server.URL(), Timeout: patient})
	answers(t, client, "key")
	server.Pause()
	for range 5 {
		brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if _, err := count.Run(brief, client, "key"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redisx.ErrSilent) {
			t.Errorf("%v, want the end of the caller's time", err)
		}
		if err := client.Get(brief, "key").Err(); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redisx.ErrSilent) {
			t.Errorf("%v, want the end of the caller's time", err)
		}
		cancel()
	}
	server.Resume()
	if _, err := run(client, "key"); err != nil {
		t.Errorf("%v after callers gave up", err)
	}
}

func TestConfirm_Replicas_AreWaitedFor(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	client := open(t, redisx.Options{URL: master.URL(), Timeout: short, Confirm: 1})
	if _, err := run(client, "key"); !errors.Is(err, redisx.ErrUnconfirmed) {
		t.Errorf("without a replica: %v", err)
	}
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	n := answers(t, client, "key")
	if got, err := replica.Client().Get(ctx, "key").Int64(); got != n || err != nil {
		t.Errorf("confirmed %d, and the replica has %d, %v", n, got, err)
	}
	replica.Pause()
	before := must.Get(master.Client().Get(ctx, "key").Int64())(t)
	// 256 writes wait, and the rest of them are not made.
	slow := open(t, redisx.Options{URL: master.URL(), Timeout: 3 * time.Second, Confirm: 1})
	var calls sync.WaitGroup
	var notMade atomic.Int64
	for range 300 {
		calls.Go(func() {
			_, err := run(slow, "key")
			if redisx.Undone(err) {
				notMade.Add(1)
			} else if !errors.Is(err, redisx.ErrUnconfirmed) && !errors.Is(err, redisx.ErrSilent) {
				t.Errorf("with the replica stopped: %v", err)
			}
		})
	}
	servertest.Await(t, "256 writes", patient, func() error {
		if n := master.Client().Get(ctx, "key").Val(); n != fmt.Sprint(before+256) {
			return fmt.Errorf("%s after %d", n, before)
		}
		return nil
	})
	calls.Wait()
	if after := master.Client().Get(ctx, "key").Val(); after != fmt.Sprint(before+256) || notMade.Load() != 300-256 {
		t.Errorf("%s writes after %d, want 256 more; %d calls were certainly not made", after, before, notMade.Load())
	}
	replica.Resume()
	answers(t, client, "key")
}

// Errors name neither keys nor arguments nor the password.
func TestErrors_SecretsInCommands_StayOut(t *testing.T) {
	for name, tt := range map[string]struct{ config, user string }{
		"another type":    {"", ""},
		"unknown command": {`rename-command EVALSHA ""`, ""},
		"wrong password":  {"requirepass other", ":hunter2@"},
	} {
		server := redistest.Alone(t, tt.config)
		server.Client().LPush(ctx, "alice@example.com", "x")
		client := open(t, redisx.Options{URL: "redis://" + tt.user + server.Addr, Timeout: patient})
		_, err := count.Run(ctx, client, "alice@example.com", "hunter2")
		if err == nil || strings.Contains(err.Error(), "alice") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWarnings_EachSetting_IsNamed(t *testing.T) {
	for config, want := range map[string][]string{
		"appendonly yes": nil,
		"save 60 1":      nil,
		"appendonly no":  {"nothing on disk"},
		"save 60 1\nmaxmemory-policy allkeys-lru":      {"allkeys-lru"},
		"appendonly no\nmaxmemory-policy volatile-ttl": {"nothing on disk", "volatile-ttl"},
		"save 60 1\nrename-command CONFIG hidden":      {"does not let its settings be read"},
	} {
		server := redistest.Alone(t, strings.Split(config, "\n")...)
		warnings, err := redisx.Warnings(ctx, open(t, redisx.Options{URL: server.URL(), Timeout: patient}), 0)
		if err != nil || len(warnings) != len(want) {
			t.Errorf("%q: %q, %v; want %d warnings", config, warnings, err, len(want))
			continue
		}
		for _, part := range want {
			if !strings.Contains(strings.Join(warnings, "\n"), part) {
				t.Errorf("%q: %q, want one of %q", config, warnings, part)
			}
		}
	}
	server := redistest.Durable(t)
	client := open(t, redisx.Options{URL: server.URL(), Timeout: patient, Confirm: 2})
	if warnings, err := redisx.Warnings(ctx, client, 2); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "0 replicas and 2 must confirm") {
		t.Errorf("%q, %v", warnings, err)
	}
}

func TestTLS_Certificate_MustBeTrusted(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	authority, ca := servertest.NewAuthority(t), filepath.Join(t.TempDir(), "ca.pem")
	must.OK(t, os.WriteFile(ca, authority.PEM(), 0o600))
	now, hour := time.Now().UnixMilli(), time.Hour.Milliseconds()
	front := frontWithTLS(t, server.Addr, authority.Certificate(now-hour, now+hour, "127.0.0.1"))
	for name, tt := range map[string]struct {
		url      string
		answered bool
	}{
		"trusted":              {"rediss://" + front + "?ca=" + ca, true},
		"not trusted":          {"rediss://" + front, false},
		"a server without TLS": {"rediss://" + server.Addr + "?ca=" + ca, false},
	} {
		if _, err := run(open(t, redisx.Options{URL: tt.url, Timeout: late}), "tls"); (err == nil) != tt.answered {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// frontWithTLS ends TLS before a server, and returns the address to connect to.
func frontWithTLS(t *testing.T, target string, certificate tls.Certificate) string {
	t.Helper()
	listener := must.Get(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}}))(t)
	t.Cleanup(func() { _ = listener.Close() })
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}
	go func() {
		for {
			outside, err := listener.Accept()
			if err != nil {
				return
			}
			inside, err := net.Dial("tcp", target)
			if err != nil {
				return
			}
			go carry(inside, outside)
			go carry(outside, inside)
		}
	}()
	return listener.Addr().String()
}
