package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// patient is a timeout for tests that are not about deadlines, on a busy machine.
const patient = 20 * time.Second

func open(t testing.TB, o redisstore.Options) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// openReady opens a store on a server of its own, and waits until it is ready.
func openReady(t *testing.T, timeout time.Duration) (*redisstore.Store, *redistest.Server) {
	t.Helper()
	server := redistest.Alone(t)
	store := open(t, redisstore.Options{URL: server.URL(), Timeout: timeout})
	answered(t, store)
	return store, server
}

// count counts its runs, and says how many there were.
var count = redisstore.NewScript(`return tostring(redis.call('INCR', KEYS[1]))`, func(string) bool { return true })

func begin(t testing.TB, store *redisstore.Store, key string) redisstore.Call {
	t.Helper()
	call, err := store.Begin(context.Background(), store.Prefix()+key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(call.End)
	return call
}

func ask(t testing.TB, store *redisstore.Store, key string) (string, error) {
	t.Helper()
	return begin(t, store, key).Ask(count)
}

func TestOptionsThatWillNotDo(t *testing.T) {
	for name, o := range map[string]redisstore.Options{
		"no URL":             {},
		"a negative timeout": {URL: "redis://localhost", Timeout: -1},
		"negative replicas":  {URL: "redis://localhost", Confirm: -1},
	} {
		if store, err := redisstore.Open(o); err == nil {
			store.Close()
			t.Errorf("%s: opened", name)
		}
	}
}

func TestPrefixes(t *testing.T) {
	for prefix, want := range map[string]string{
		"mailgate:{}": "mailgate:name:{}",
		"acme:":       "acme:name:",
		"{acme}":      "{acme}name:",
	} {
		if got := redisstore.Below(prefix, "name"); got != want {
			t.Errorf("below %q: %q, want %q", prefix, got, want)
		}
	}
	if got := open(t, redisstore.Options{URL: "redis://localhost"}).Prefix(); got != "mailgate:{}" {
		t.Errorf("by default %q", got)
	}
}

func TestABeginningNobodyWaitsFor(t *testing.T) {
	store := open(t, redisstore.Options{URL: "redis://localhost"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := store.Begin(ctx, "key"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What a broken connection does to each way to run a script.
func TestLostReplies(t *testing.T) {
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	store := open(t, redisstore.Options{URL: proxy.URL(), Timeout: patient})
	if _, err := ask(t, store, "warm"); err != nil {
		t.Fatal(err)
	}
	decide := func(call redisstore.Call) (reply string, err error) {
		err = call.Decide(count, func(text string) (int64, bool, error) {
			reply = text
			return time.Now().UnixMilli(), false, nil
		})
		return reply, err
	}
	for name, tt := range map[string]struct {
		run  func(redisstore.Call) (string, error)
		want string
	}{
		"ask":    {func(c redisstore.Call) (string, error) { return c.Ask(count) }, "2"},
		"decide": {decide, "2"},
		"once":   {func(c redisstore.Call) (string, error) { return c.Once(count) }, ""},
	} {
		proxy.CutReplies(1, "evalsha")
		reply, err := tt.run(begin(t, store, name))
		if reply != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: run %q times, %v; want %q", name, reply, err, tt.want)
		}
	}
}

// A server that forgets its programs is sent them again, whichever way they are run.
func TestForgottenScripts(t *testing.T) {
	server := redistest.Alone(t)
	for name, confirm := range map[string]int{"shared": 0, "confirmed": 1} {
		store := open(t, redisstore.Options{URL: server.URL(), Timeout: time.Second, Confirm: confirm})
		for range 3 {
			if err := server.Client().ScriptFlush(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
			_, err := ask(t, store, name)
			if (err == nil) != (confirm == 0) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := server.Client().Get(context.Background(), "mailgate:{}"+name).Val(); n != "3" {
			t.Errorf("%s: run %s times, want 3", name, n)
		}
	}
}

// A script whose writes may be forgotten, and a reply that says nothing was written, wait
// for no replica.
func TestOnlyWritesAreConfirmed(t *testing.T) {
	store := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Timeout: 2 * time.Second, Confirm: 1})
	const source = `return ARGV[1]`
	wrote := func(reply string) bool { return reply == "wrote" }
	for name, tt := range map[string]struct {
		script *redisstore.Script
		word   string
		want   string
	}{
		"may be forgotten": {redisstore.NewScript(source, nil), "wrote", ""},
		"nothing written":  {redisstore.NewScript(source, wrote), "read", ""},
		"written":          {redisstore.NewScript(source, wrote), "wrote", "replicas"}, // too few in time, or on a slow day none at all
	} {
		reply, err := begin(t, store, "key").Ask(tt.script, tt.word)
		if tt.want == "" && (err != nil || reply != tt.word) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %q, %v; want %q", name, reply, err, tt.want)
		}
	}
}

// The words of a decision: its own, until when somebody waits, and a test's clock.
func TestWordsOfADecision(t *testing.T) {
	server := redistest.Alone(t)
	echo := redisstore.NewScript(`return table.concat(ARGV, ' ')`, nil)
	words := func(store *redisstore.Store) (text string) {
		t.Helper()
		err := begin(t, store, "key").Decide(echo, func(reply string) (int64, bool, error) {
			text = reply
			return 1_800_000_000_000, false, nil
		}, "own")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	live := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	if got := words(live); got != "own " {
		t.Errorf("before the server's clock is known: %q", got)
	}
	if got := words(live); !strings.HasPrefix(got, "own 18000000") {
		t.Errorf("when it is: %q", got)
	}
	clock := func() int64 { return 1_800_000_000_123 }
	test := open(t, redisstore.Options{URL: server.URL(), Timeout: patient, Clock: clock})
	for range 2 {
		if got := words(test); got != "own  1800000000 123000" {
			t.Errorf("with a test's clock: %q", got)
		}
	}
}

// A server that says it came too late is asked once more, and then believed.
func TestTooLate(t *testing.T) {
	store := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Timeout: patient})
	for name, tt := range map[string]struct {
		late func(runs string) bool
		want error
	}{
		"once":   {func(runs string) bool { return runs == "1" }, nil},
		"always": {func(string) bool { return true }, redisstore.ErrTooLate},
	} {
		err := begin(t, store, name).Decide(count, func(runs string) (int64, bool, error) {
			return time.Now().UnixMilli(), tt.late(runs), nil
		})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if runs, err := ask(t, store, name); runs != "3" || err != nil {
			t.Errorf("%s: then run for the %s. time, %v", name, runs, err)
		}
	}
}

func TestParseClock(t *testing.T) {
	for text, want := range map[string]int64{
		"18000000000":      1_800_000_000_000,
		"1800000000999":    1_800_000_000_000,
		"18000000001000":   1_800_000_000_001,
		"1800000000999999": 1_800_000_000_999,
		"1800000000":       0,
		"":                 0,
		"18000000x00":      0,
		"1800000000-1":     0,
	} {
		now, err := redisstore.ParseClock(text)
		if now != want || errors.Is(err, redisstore.ErrReply) != (want == 0) {
			t.Errorf("%q: %d, %v", text, now, err)
		}
	}
}

// What begins when the store is closed is not done, for certain, and to close it twice is no
// error.
func TestClosed(t *testing.T) {
	server := redistest.Alone(t)
	store := open(t, redisstore.Options{URL: server.URL()})
	for range 2 {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	for name, ask := range map[string]func(redisstore.Call, *redisstore.Script, ...any) (string, error){
		"ask": redisstore.Call.Ask, "once": redisstore.Call.Once,
	} {
		if _, err := ask(begin(t, store, name), count); !redisstore.Undone(err) {
			t.Errorf("%s: %v is no proof", name, err)
		}
	}
}
