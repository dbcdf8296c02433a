package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/gofiber/fiber/v2/middleware/timeout"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

const noon = int64(1_795_176_000_000) // 2026-11-20T12:00:00Z

// here is the limiter's key of the requests of these tests.
var here = gate.KeyOfPeer(netip.MustParseAddr("127.0.0.1"))

// A site is a program behind a gate, on a free port.
type site struct {
	t       *testing.T
	url     string
	client  *http.Client
	clock   atomic.Int64
	limiter throttle.Limiter
	served  atomic.Int64 // requests that came through
}

// open serves a handler behind the gate; two requests a minute pass.
func open(t *testing.T, change func(*gate.Options), handler fiber.Handler) *site {
	t.Helper()
	s := &site{t: t}
	s.clock.Store(noon)
	minute, err := throttle.NewFixedWindow(throttle.Tier{Name: "minute", Limit: 2, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s.limiter = inMemory(minute, s.clock.Load)
	o := gate.Options{Limiter: s.limiter}
	if change != nil {
		change(&o)
	}
	protect, err := gate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if handler == nil {
		handler = func(c *fiber.Ctx) error { return c.SendString("through") }
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(recover.New())
	app.All("/*", protect, func(c *fiber.Ctx) error {
		s.served.Add(1)
		return handler(c)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener) }()
	transport := &http.Transport{}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := errors.Join(app.ShutdownWithTimeout(5*time.Second), <-served); err != nil {
			t.Error(err)
		}
	})
	s.url = "http://" + listener.Addr().String()
	return s
}

type reply struct {
	status int
	header http.Header
	text   string
}

// ask sends one request, with headers written name: value.
func (s *site) ask(headers ...string) reply {
	s.t.Helper()
	request, err := http.NewRequest("GET", s.url+"/page", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Add(name, value)
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

func (got reply) is(t *testing.T, status int) {
	t.Helper()
	if got.status != status {
		t.Fatalf("answered %d, want %d: %s", got.status, status, got.text)
	}
}

// Two pass and the third does not, to the letter.
func TestGate(t *testing.T) {
	s := open(t, nil, nil)
	for _, want := range []string{`"minute";r=1;t=60`, `"minute";r=0;t=60`} {
		got := s.ask()
		got.is(t, 200)
		if got.text != "through" || got.header.Get("RateLimit") != want || got.header.Get("RateLimit-Policy") != `"minute";q=2;w=60` {
			t.Errorf("answered %q with %v", got.text, got.header)
		}
	}
	s.clock.Add(500)
	got := s.ask()
	got.is(t, 429)
	want := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,` +
		`"detail":"The limit minute of these requests is reached. The next one is let through in 60 s.","rule":"requests",` +
		`"limit":"minute","wait_ms":59500,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:00.500Z","limits":[` +
		`{"name":"minute","limit":2,"window_ms":60000,"remaining":0,"wait_ms":59500}],"degraded":false,"violated-policies":["minute"]}`
	if got.text != want || !json.Valid([]byte(got.text)) {
		t.Errorf("answered\n%s, want\n%s", got.text, want)
	}
	for name, want := range map[string]string{
		"RateLimit": `"minute";r=0;t=60`, "RateLimit-Policy": `"minute";q=2;w=60`, "Retry-After": "60",
		"Content-Type": "application/problem+json", "Cache-Control": "no-store",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.header.Get(name), want)
		}
	}
	if s.served.Load() != 2 {
		t.Errorf("%d came through", s.served.Load())
	}
	s.clock.Add(59_499)
	s.ask().is(t, 429)
	s.clock.Add(1)
	s.ask().is(t, 200)
}

// Whoever is not signed in where that is needed is told so, and costs nothing.
func TestNeedUser(t *testing.T) {
	s := open(t, func(o *gate.Options) {
		o.NeedUser = true
		o.User = func(c *fiber.Ctx) (string, bool) { return c.Get("X-User"), c.Get("X-User") != "" }
	}, nil)
	for range 5 {
		got := s.ask()
		got.is(t, 401)
		if !strings.Contains(got.text, `"urn:mailgate:problem:unauthorized"`) || !strings.Contains(got.text, `"status":401,`) ||
			got.header.Get("RateLimit") != "" || got.header.Get("Retry-After") != "" || !json.Valid([]byte(got.text)) {
			t.Errorf("answered %s %v", got.text, got.header)
		}
	}
	s.ask("X-User: a").is(t, 200)
	s.ask("X-User: a").is(t, 200)
	s.ask("X-User: a").is(t, 429)
}

// Whoever is not counted gets the handler's answer, whatever it is.
func TestSkip(t *testing.T) {
	s := open(t, func(o *gate.Options) { o.Skip = func(*fiber.Ctx) bool { return true } }, func(*fiber.Ctx) error { return fiber.ErrTeapot })
	s.ask().is(t, 418)
}

// A handler's own headers stay, in whatever letters it writes them.
func TestHandlersKeepTheirHeaders(t *testing.T) {
	for _, name := range []string{"RateLimit", "ratelimit", "RateLimit-Policy"} {
		s := open(t, nil, func(c *fiber.Ctx) error {
			c.Set(name, "its own")
			return c.SendStatus(204)
		})
		got := s.ask()
		got.is(t, 204)
		both := append(got.header.Values("RateLimit"), got.header.Values("RateLimit-Policy")...)
		if len(both) != 1 || both[0] != "its own" {
			t.Errorf("%s: %q", name, both)
		}
	}
}

// Where answers speak of something else, the headers are for refusals alone.
func TestQuiet(t *testing.T) {
	s := open(t, func(o *gate.Options) { o.Quiet = true }, nil)
	for i, want := range []string{"", "", `"minute";r=0;t=60`} {
		if got := s.ask(); got.status != []int{200, 200, 429}[i] || got.header.Get("RateLimit") != want {
			t.Errorf("answered %d with %v", got.status, got.header)
		}
	}
}

// What is given back after which answer, and what the headers then say.
func TestRelease(t *testing.T) {
	tests := []struct {
		name    string
		handler fiber.Handler
		status  int
		freed   bool
	}{
		{"a success", func(c *fiber.Ctx) error { return c.SendString("ok") }, 200, true},
		{"a failure", func(c *fiber.Ctx) error { return c.SendStatus(403) }, 403, false},
		{"an error of Fiber's", func(*fiber.Ctx) error { return fiber.ErrForbidden }, 403, false},
		{"any error", func(*fiber.Ctx) error { return errors.New("broken") }, 500, false},
		{"an error that is none", func(*fiber.Ctx) error { return fiber.NewError(302) }, 302, true},
		{"a success within a time of its own", timeout.NewWithContext(func(c *fiber.Ctx) error { return c.SendString("ok") }, time.Minute), 200, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, func(o *gate.Options) { o.Release = func(status int) bool { return status < 400 } }, tt.handler)
			for i := range 3 {
				got := s.ask()
				want, header := tt.status, `"minute";r=2;t=0`
				if !tt.freed {
					header = []string{`"minute";r=1;t=60`, `"minute";r=0;t=60`, `"minute";r=0;t=60`}[i]
				}
				if !tt.freed && i == 2 {
					want = 429
				}
				got.is(t, want)
				if got.header.Get("RateLimit") != header {
					t.Errorf("RateLimit is %s, want %s", got.header.Get("RateLimit"), header)
				}
			}
		})
	}
}

// A handler that panics has answered with whatever it is recovered as, which is a 500.
func TestReleaseAfterAPanic(t *testing.T) {
	for _, from := range []int{500, 501} {
		s := open(t, func(o *gate.Options) { o.Release = func(status int) bool { return status >= from } }, func(*fiber.Ctx) error { panic("broken") })
		s.ask().is(t, 500)
		want := map[int]int{500: 2, 501: 1}[from]
		if v, err := s.limiter.Peek(context.Background(), here); err != nil || v.Tiers[0].Remaining != want {
			t.Errorf("where %d is given back %d places are left, want %d (%v)", from, v.Tiers[0].Remaining, want, err)
		}
	}
}

// A broken limiter lets nobody through, unless it is to.
func TestFailed(t *testing.T) {
	fault := errors.New("dial tcp 10.1.2.3:6379: connection refused")
	broken := func(o *gate.Options) { o.Limiter = &faulty{Historian: o.Limiter.(throttle.Historian), take: fault} }
	s := open(t, broken, nil)
	got := s.ask()
	got.is(t, 503)
	if !strings.Contains(got.text, `"urn:mailgate:problem:store-unavailable"`) || !strings.Contains(got.text, `"status":503,`) ||
		got.header.Get("Retry-After") != "1" || strings.Contains(got.text, "10.1.2.3") || !json.Valid([]byte(got.text)) || s.served.Load() != 0 {
		t.Errorf("answered %s", got.text)
	}
	var told error
	s = open(t, func(o *gate.Options) {
		broken(o)
		o.Failed = func(c *fiber.Ctx, err error) error {
			told = err
			return c.Next()
		}
	}, nil)
	s.ask().is(t, 200)
	if !errors.Is(told, fault) {
		t.Errorf("told %v", told)
	}
	// What cannot be given back has counted.
	s = open(t, func(o *gate.Options) {
		o.Limiter = &faulty{Historian: o.Limiter.(throttle.Historian), release: fault}
		o.Release = func(int) bool { return true }
	}, nil)
	if got := s.ask(); got.status != 200 || got.header.Get("RateLimit") != `"minute";r=1;t=60` {
		t.Errorf("answered %d %v", got.status, got.header)
	}
	s = open(t, func(o *gate.Options) {
		o.Limiter = &faulty{Historian: o.Limiter.(throttle.Historian), peek: fault}
		o.Release = func(int) bool { return true }
	}, nil)
	if got := s.ask(); got.status != 200 || got.header.Get("RateLimit") != `"minute";r=1;t=60` {
		t.Errorf("answered %d %v", got.status, got.header)
	}
	if v, err := s.limiter.Peek(context.Background(), here); err != nil || v.Tiers[0].Remaining != 2 {
		t.Errorf("%v %v", v.Tiers, err)
	}
}

// What a limiter may have charged although it failed is given back before Failed is called,
// even where the request's own time is up, if the limiter knows it again.
func TestFailedGivesBack(t *testing.T) {
	fault := errors.New("the answer of the store is lost")
	for _, tt := range []struct {
		name  string
		exact bool
		left  int // of two places
	}{
		{"tiers know the send by its id", true, 2},
		{"a counter does not", false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var limiter throttle.Limiter
			left := func() int {
				v, err := limiter.Peek(context.Background(), here)
				if err != nil {
					t.Fatal(err)
				}
				return v.Tiers[0].Remaining
			}
			toFailed := -1
			s := open(t, func(o *gate.Options) {
				limiter = o.Limiter
				if tt.exact {
					two, err := throttle.ParsePolicy("minute=2/60s")
					if err != nil {
						t.Fatal(err)
					}
					limiter = inMemory(two, nil)
				}
				o.Limiter = &faulty{Historian: limiter.(throttle.Historian), recorded: fault}
				o.Key = func(c *fiber.Ctx) string { // the first middleware sees to the context
					c.SetUserContext(untilTaken())
					return ""
				}
				o.Failed = func(c *fiber.Ctx, err error) error {
					if toFailed = left(); !errors.Is(err, fault) {
						t.Errorf("told %v", err)
					}
					return c.Next()
				}
			}, nil)
			s.ask().is(t, 200)
			if toFailed != tt.left || left() != tt.left {
				t.Errorf("%d places are left, and were when Failed was called %d; want %d", left(), toFailed, tt.left)
			}
		})
	}
}

// A store that hangs keeps nobody waiting for what is given back.
func TestFailedDoesNotHang(t *testing.T) {
	for name, fault := range map[string]func(*testing.T, *gate.Options) *faulty{
		"a take": func(t *testing.T, o *gate.Options) *faulty {
			tiers := inMemory(throttle.DefaultPolicy(), nil).(throttle.Historian)
			return &faulty{Historian: tiers, recorded: errors.New("the answer of the store is lost"), hangs: t}
		},
		"a place in a queue": func(t *testing.T, o *gate.Options) *faulty {
			pace, err := throttle.NewLeakyBucket(throttle.Tier{Name: "pace", Limit: 1, Window: time.Hour}, 2)
			if err != nil {
				t.Fatal(err)
			}
			queue := inMemory(pace, nil)
			if _, err := queue.Take(context.Background(), here, throttle.NewID()); err != nil {
				t.Fatal(err)
			}
			o.Key = func(c *fiber.Ctx) string {
				c.SetUserContext(untilTaken())
				return ""
			}
			return &faulty{Historian: queue.(throttle.Historian), hangs: t}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var limiter *faulty
			open(t, func(o *gate.Options) { limiter = fault(t, o); o.Limiter = limiter }, nil).ask().is(t, 503)
			if limiter.releases.Load() != 1 {
				t.Errorf("given back %d times", limiter.releases.Load())
			}
		})
	}
}

// A middleware in front of the gate reads the headers as Fiber hands them out.
func TestGate_MiddlewareInFront_ReadsHeaders(t *testing.T) {
	minute, err := throttle.NewFixedWindow(throttle.Tier{Name: "minute", Limit: 1, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	protect, err := gate.New(gate.Options{Limiter: inMemory(minute, func() int64 { return noon })})
	if err != nil {
		t.Fatal(err)
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	var seen []string
	app.Use(func(c *fiber.Ctx) error {
		err := c.Next()
		seen = append(seen, c.GetRespHeader("RateLimit")+" "+c.GetRespHeader("RateLimit-Policy"))
		return err
	}, protect)
	app.Get("/", func(c *fiber.Ctx) error { return c.SendString("through") })
	for range 2 {
		if _, err := app.Test(httptest.NewRequest("GET", "/", nil)); err != nil {
			t.Fatal(err)
		}
	}
	const want = `"minute";r=0;t=60 "minute";q=1;w=60`
	if len(seen) != 2 || seen[0] != want || seen[1] != want {
		t.Errorf("seen %q", seen)
	}
}

// untilTaken is a request's context that ends when a faulty limiter has recorded it.
func untilTaken() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	return context.WithValue(ctx, givesUp{}, cancel)
}

// givesUp is the key under which a request's context has what ends it.
type givesUp struct{}

// A faulty limiter fails where it is told to.
type faulty struct {
	throttle.Historian
	take, release, peek error
	recorded            error      // what Take ends with once it has recorded, and the request's time is up
	hangs               *testing.T // Release does, if this is set, for as long as it may
	releases            atomic.Int64
}

func (f *faulty) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if f.take != nil {
		return throttle.Verdict{}, f.take
	}
	verdict, err := f.Historian.Take(ctx, key, id)
	if err != nil {
		return verdict, err
	}
	if cancel, ok := ctx.Value(givesUp{}).(context.CancelFunc); ok {
		cancel()
	}
	if f.recorded != nil {
		return throttle.Verdict{}, f.recorded
	}
	return verdict, nil
}

func (f *faulty) Release(ctx context.Context, key string, a throttle.Admission) (bool, error) {
	f.releases.Add(1)
	if f.release != nil {
		return false, f.release
	}
	if f.hangs != nil {
		if _, bounded := ctx.Deadline(); !bounded {
			f.hangs.Error("giving back has no end")
			return false, nil
		}
		<-ctx.Done()
		return false, ctx.Err()
	}
	return f.Historian.Release(ctx, key, a)
}

func (f *faulty) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	if f.peek != nil {
		return throttle.Verdict{}, f.peek
	}
	return f.Historian.Peek(ctx, key)
}

// A program may refuse in its own words; the headers are there already.
func TestRefuse(t *testing.T) {
	s := open(t, func(o *gate.Options) {
		o.Refuse = func(c *fiber.Ctx, v throttle.Verdict) error {
			return c.Status(418).SendString(fmt.Sprint(v.Limit, " ", v.Wait))
		}
	}, nil)
	s.ask()
	s.ask()
	if got := s.ask(); got.status != 418 || got.text != "minute 60000" || got.header.Get("RateLimit") != `"minute";r=0;t=60` {
		t.Errorf("answered %d %s %v", got.status, got.text, got.header)
	}
}

// A limiter that queues lets requests through at even distances, and lets go of one
// whose program gives up.
func TestQueue(t *testing.T) {
	const apart = 30 * time.Millisecond
	pace, err := throttle.NewLeakyBucket(throttle.Tier{Name: "pace", Limit: 1, Window: apart}, 2)
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan time.Time, 3)
	s := open(t, func(o *gate.Options) { o.Limiter = inMemory(pace, func() int64 { return noon }) },
		func(*fiber.Ctx) error { came <- time.Now(); return nil })
	began := time.Now()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { s.ask().is(t, 200) })
	}
	all.Wait()
	for i := range 3 {
		if after := (<-came).Sub(began); after < time.Duration(i)*apart {
			t.Errorf("request %d came through after %v", i, after)
		}
	}
	s.ask().is(t, 429)

	long, err := throttle.NewLeakyBucket(throttle.Tier{Name: "pace", Limit: 1, Window: time.Hour}, 2)
	if err != nil {
		t.Fatal(err)
	}
	queue := inMemory(long, nil)
	s = open(t, func(o *gate.Options) {
		o.Limiter = &faulty{Historian: queue.(throttle.Historian)}
		o.User = func(c *fiber.Ctx) (string, bool) { // the first middleware sees to the context
			if c.Get("X-Impatient") != "" {
				c.SetUserContext(untilTaken())
			}
			return "", false
		}
	}, nil)
	s.ask().is(t, 200)
	for range 4 { // each leaves its place in the queue
		got := s.ask("X-Impatient: yes")
		got.is(t, 503)
		if !strings.Contains(got.text, `"urn:mailgate:problem:busy"`) || got.header.Get("Retry-After") == "" {
			t.Errorf("%s", got.text)
		}
	}
	if v, err := queue.Peek(context.Background(), here); err != nil || v.Tiers[0].Remaining != 2 {
		t.Errorf("%v %v", v.Tiers, err)
	}
}

// Many at once are as many as the limit says.
func TestRace(t *testing.T) {
	s := open(t, nil, nil)
	var through atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if s.ask().status == 200 {
				through.Add(1)
			}
		})
	}
	all.Wait()
	if through.Load() != 2 || s.served.Load() != 2 {
		t.Errorf("%d were let through", through.Load())
	}
}

func TestNewRefuses(t *testing.T) {
	for want, o := range map[string]gate.Options{
		"gate: Limiter is missing":                   {},
		"gate: NeedUser is set, but User is missing": {Limiter: &faulty{}, NeedUser: true},
	} {
		if _, err := gate.New(o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What the second gate of a route refuses, the first gives back if it is told to.
func TestTwoGates(t *testing.T) {
	for given, want := range map[bool]int{true: 9, false: 6} {
		inner := open(t, nil, nil).limiter // two a minute
		second, err := gate.New(gate.Options{Limiter: inner, Name: "inner"})
		if err != nil {
			t.Fatal(err)
		}
		minute, err := throttle.NewFixedWindow(throttle.Tier{Name: "minute", Limit: 10, Window: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		outer := inMemory(minute, func() int64 { return noon })
		if _, err := inner.Take(t.Context(), here, throttle.NewID()); err != nil {
			t.Fatal(err)
		}
		s := open(t, func(o *gate.Options) {
			o.Limiter = outer
			if given {
				o.Release = func(status int) bool { return status == 429 }
			}
		}, second)
		for i, status := range []int{404, 429, 429, 429} { // behind the second gate there is nothing
			got := s.ask()
			got.is(t, status)
			if i > 0 && !strings.Contains(got.text, `"rule":"inner"`) {
				t.Errorf("answered %s", got.text)
			}
		}
		if v, err := outer.Peek(t.Context(), here); err != nil || v.Tiers[0].Remaining != want {
			t.Errorf("given back %v: %v, %v", given, v.Tiers, err)
		}
	}
}

// Who logs why nothing could be decided answers as the gate does.
func TestFailedIsLogged(t *testing.T) {
	fault := errors.New("connection refused")
	broken := func(o *gate.Options) { o.Limiter = &faulty{Historian: o.Limiter.(throttle.Historian), take: fault} }
	want := open(t, broken, nil).ask()
	var logged error
	got := open(t, func(o *gate.Options) {
		broken(o)
		o.Failed = func(c *fiber.Ctx, err error) error {
			logged = err
			return gate.Failed(c, err)
		}
	}, nil).ask()
	if got.text != want.text || got.status != want.status || got.header.Get("Retry-After") != "1" || !errors.Is(logged, fault) {
		t.Errorf("answered %d %s, and logged %v", got.status, got.text, logged)
	}
}

// A deadline in front of the gate ends the wait in a queue, and the place is free again.
func TestDeadlineInFrontOfAQueue(t *testing.T) {
	hour, err := throttle.NewLeakyBucket(throttle.Tier{Name: "pace", Limit: 1, Window: time.Hour}, 2)
	if err != nil {
		t.Fatal(err)
	}
	queue := inMemory(hour, func() int64 { return noon })
	held, err := gate.New(gate.Options{Limiter: queue})
	if err != nil {
		t.Fatal(err)
	}
	app := fiber.New()
	app.Use(func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), 10*time.Millisecond)
		defer cancel()
		c.SetUserContext(ctx)
		return c.Next()
	}, held)
	app.Get("/", func(c *fiber.Ctx) error { return c.SendStatus(204) })
	for i, status := range []int{204, 503, 503, 503, 503} {
		got, err := app.Test(httptest.NewRequest("GET", "/", nil), -1)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		got.Body.Close()
		busy := strings.Contains(string(text), `"urn:mailgate:problem:busy"`) && strings.Contains(string(text), `"status":503,`) && got.Header.Get("Retry-After") == "1"
		if err != nil || got.StatusCode != status || busy != (status == 503) {
			t.Errorf("request %d is answered %d %s, %v", i, got.StatusCode, text, err)
		}
	}
}

// inMemory is a limiter on a store of its own.
func inMemory(a throttle.Algorithm, now func() int64) throttle.Limiter {
	store, err := cache.Open(cache.Options{Now: now})
	if err != nil {
		panic(err)
	}
	return local.New(store.Table("requests"), a, now)
}
