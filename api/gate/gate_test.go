package gate_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

const noon = int64(1_795_176_000_000) // 2026-11-20T12:00:00Z

// here is the limiter's key of the requests of these tests.
var here = gate.KeyOfPeer(netip.MustParseAddr("127.0.0.1"))

// site is a program behind a gate, on a free port.
type site struct {
	t       *testing.T
	url     string
	clock   atomic.Int64
	limiter throttle.Limiter
	served  atomic.Int64 // requests that were let through
}

// open serves a handler behind the gate, which admits two requests a minute.
func open(t *testing.T, change func(*gate.Options), handler fiber.Handler, front ...any) *site {
	t.Helper()
	s := &site{t: t}
	s.clock.Store(noon)
	s.limiter = inMemory(t, "minute=2/60s", s.clock.Load)
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
	app.Use(append(front, recover.New())...)
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
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := errors.Join(app.ShutdownWithTimeout(5*time.Second), <-served); err != nil {
			t.Error(err)
		}
	})
	s.url = "http://" + listener.Addr().String()
	return s
}

// inMemory is a limiter by a fixed window, on a store of its own.
func inMemory(t *testing.T, tier string, now func() int64) throttle.Limiter {
	t.Helper()
	parsed, err := throttle.ParseTier(tier)
	if err != nil {
		t.Fatal(err)
	}
	window, err := throttle.NewFixedWindow(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return inMemoryBy(t, window, now)
}

func inMemoryBy(t *testing.T, a throttle.Algorithm, now func() int64) throttle.Limiter {
	t.Helper()
	store, err := cache.Open(cache.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return local.New(store.Table("requests"), a, now)
}

type reply struct {
	status int
	header http.Header
	text   string
}

// ask sends one request with a value of X-Key.
func (s *site) ask(key string) reply {
	s.t.Helper()
	request, err := http.NewRequest("GET", s.url+"/page", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("X-Key", key)
	request.Header.Set("X-Forwarded-For", key[:min(len(key), 15)])
	response, err := http.DefaultClient.Do(request)
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

// is expects a status, and a RateLimit header that begins so.
func (got reply) is(t *testing.T, status int, rateLimit string) {
	t.Helper()
	if got.status != status || !strings.HasPrefix(got.header.Get("RateLimit"), rateLimit) {
		t.Fatalf("answered %d with %q, want %d with %q: %s", got.status, got.header.Get("RateLimit"), status, rateLimit, got.text)
	}
}

func (s *site) remaining() int {
	s.t.Helper()
	v, err := s.limiter.Peek(context.Background(), here)
	if err != nil {
		s.t.Fatal(err)
	}
	return v.Remaining()
}

func byHeader(o *gate.Options) { o.Key = func(c *fiber.Ctx) string { return c.Get("X-Key") } }

// Two are let through and the third is not, to the letter.
func TestNew_ThirdRequest_Is429(t *testing.T) {
	s := open(t, nil, nil)
	s.ask("").is(t, 200, `"minute";r=1;t=60;pk=:`)
	s.ask("").is(t, 200, `"minute";r=0;t=60;pk=:`)
	s.clock.Add(500)
	got := s.ask("")
	got.is(t, 429, `"minute";r=0;t=60;pk=:`)
	const want = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,` +
		`"detail":"The minute limit of these requests is reached. Try again in 60 s.","rule":"requests",` +
		`"limit":"minute","wait_ms":59500,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:00.500Z","limits":[` +
		`{"name":"minute","limit":2,"window_ms":60000,"remaining":0,"wait_ms":59500}],"degraded":false,"violated-policies":["minute"]}`
	if got.text != want {
		t.Errorf("answered\n%s, want\n%s", got.text, want)
	}
	for name, want := range map[string]string{"Retry-After": "60", "Content-Type": "application/problem+json", "Cache-Control": "no-store"} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.header.Get(name), want)
		}
	}
	s.clock.Add(59_499)
	s.ask("").is(t, 429, "")
	s.clock.Add(1)
	s.ask("").is(t, 200, "")
	if s.served.Load() != 3 {
		t.Errorf("%d were let through", s.served.Load())
	}
}

var partition = regexp.MustCompile(`^"minute";[qr]=\d;[tw]=60;pk=:([A-Za-z0-9+/]{11}=):$`)

// partitionOf is the pk of both headers, which is eight bytes.
func partitionOf(t *testing.T, header http.Header) string {
	t.Helper()
	one, other := partition.FindStringSubmatch(header.Get("RateLimit")), partition.FindStringSubmatch(header.Get("RateLimit-Policy"))
	if one == nil || other == nil || one[1] != other[1] {
		t.Fatalf("headers %v", header)
	}
	if raw, err := base64.StdEncoding.DecodeString(one[1]); err != nil || len(raw) != 8 {
		t.Fatalf("pk %q, %v", one[1], err)
	}
	return one[1]
}

func TestNew_Keys_HavePartitionsOfTheirOwn(t *testing.T) {
	s := open(t, byHeader, nil)
	alice, bob := partitionOf(t, s.ask("alice").header), partitionOf(t, s.ask("bob").header)
	s.ask("alice")
	if again := partitionOf(t, s.ask("alice").header); alice == bob || again != alice {
		t.Errorf("alice is %s and then %s, bob %s", alice, again, bob)
	}
	if other := partitionOf(t, open(t, byHeader, nil).ask("alice").header); other == alice {
		t.Error("two secrets make one hash")
	}
}

// Which requests are counted together, and under which key of the limiter.
func TestNew_Keys_AreCountedApart(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, tt := range []struct {
		name        string
		options     func(*gate.Options)
		first, then string // two by the first reach the limit
		status      int    // of one by then
		key         string // of the first
	}{
		{"the address, whatever a header says", nil, "1.1.1.1", "2.2.2.2", 429, here},
		{"keys", byHeader, "a", "b", 200, gate.KeyOf("a")},
		{"no key is the address", byHeader, "", "", 429, here},
		{"a key is no address", byHeader, "", "127.0.0.1", 200, gate.KeyOfPeer(netip.MustParseAddr("::ffff:127.0.0.1"))},
		{"long keys", byHeader, long + "a", long + "b", 200, gate.KeyOf(long + "a")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, tt.options, nil)
			s.ask(tt.first).is(t, 200, "")
			s.ask(tt.first).is(t, 200, "")
			s.ask(tt.then).is(t, tt.status, "")
			if n, err := s.limiter.Reset(context.Background(), tt.key); n != 2 || err != nil {
				t.Errorf("%d requests under the key, %v", n, err)
			}
		})
	}
}

// A handler's own headers stay, in whatever letters it writes them.
func TestNew_HandlersHeaders_Stay(t *testing.T) {
	for _, name := range []string{"RateLimit", "ratelimit", "RateLimit-Policy"} {
		got := open(t, nil, func(c *fiber.Ctx) error {
			c.Set(name, "its own")
			return c.SendStatus(204)
		}).ask("")
		both := append(got.header.Values("RateLimit"), got.header.Values("RateLimit-Policy")...)
		if got.status != 204 || !slices.Equal(both, []string{"its own"}) {
			t.Errorf("%s: %d %q", name, got.status, both)
		}
	}
}

// A middleware in front of the gate reads the headers as Fiber returns them.
func TestNew_MiddlewareInFront_ReadsHeaders(t *testing.T) {
	var seen string
	s := open(t, nil, nil, func(c *fiber.Ctx) error {
		err := c.Next()
		seen = strings.Clone(c.GetRespHeader("RateLimit"))
		return err
	})
	for range 3 {
		if got := s.ask(""); seen == "" || seen != got.header.Get("RateLimit") {
			t.Errorf("seen %q of %v", seen, got.header)
		}
	}
}

// What is given back after which answer, and what the headers then say.
func TestRelease_ByStatus_GivesBack(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler fiber.Handler
		status  int
		freed   bool
	}{
		{"a success", func(c *fiber.Ctx) error { return c.SendString("ok") }, 200, true},
		{"a failure", func(c *fiber.Ctx) error { return c.SendStatus(403) }, 403, false},
		{"an error of Fiber's", func(*fiber.Ctx) error { return fiber.ErrForbidden }, 403, false},
		{"any error", func(*fiber.Ctx) error { return errors.New("broken") }, 500, false},
		{"an error with a status below 400", func(*fiber.Ctx) error { return fiber.NewError(302) }, 302, true},
		{"a panic", func(*fiber.Ctx) error { panic("broken") }, 500, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, func(o *gate.Options) { o.Release = func(status int) bool { return status < 400 } }, tt.handler)
			header, remaining := `"minute";r=2;t=0`, 2
			if !tt.freed {
				header, remaining = `"minute";r=1;t=60`, 1
			}
			if tt.name == "a panic" { // the answer is of the middleware that recovers it
				header = ""
			}
			s.ask("").is(t, tt.status, header)
			if s.remaining() != remaining {
				t.Errorf("%d remain, want %d", s.remaining(), remaining)
			}
		})
	}
}

func TestRefuse_Given_Answers(t *testing.T) {
	s := open(t, func(o *gate.Options) {
		o.Refuse = func(c *fiber.Ctx, v throttle.Verdict) error {
			return c.Status(418).SendString(fmt.Sprint(v.Limit, " ", v.Wait))
		}
	}, nil)
	s.ask("")
	s.ask("")
	got := s.ask("")
	got.is(t, 418, `"minute";r=0;t=60`)
	if got.text != "minute 60000" {
		t.Error(got.text)
	}
}

// faulty is a limiter that fails where it is told to.
type faulty struct {
	throttle.Limiter
	take, lost, release, peek error // lost is of a Take that has charged
	hangs                     bool  // Release, for as long as it may
	releases                  int
}

func (f *faulty) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if f.take != nil {
		return throttle.Verdict{}, f.take
	}
	v, err := f.Limiter.Take(ctx, key, id)
	return v, errors.Join(err, f.lost)
}

func (f *faulty) Release(ctx context.Context, key string, a throttle.Admission) (bool, error) {
	f.releases++
	if _, bounded := ctx.Deadline(); f.hangs && bounded {
		<-ctx.Done()
		return false, ctx.Err()
	}
	if f.release != nil {
		return false, f.release
	}
	return f.Limiter.Release(ctx, key, a)
}

func (f *faulty) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	if f.peek != nil {
		return throttle.Verdict{}, f.peek
	}
	return f.Limiter.Peek(ctx, key)
}

// fail puts a faulty limiter in front of the options' own.
func fail(f faulty) func(*gate.Options) {
	return func(o *gate.Options) {
		f.Limiter = o.Limiter
		o.Limiter = &f
	}
}

// A limiter that fails lets no request through, unless Options.Failed does.
func TestFailed_LimiterFails_Is503(t *testing.T) {
	fault := errors.New("dial tcp 10.1.2.3:6379: connection refused")
	s := open(t, fail(faulty{take: fault}), nil)
	got := s.ask("")
	got.is(t, 503, "")
	if !strings.Contains(got.text, `"urn:mailgate:problem:store-unavailable"`) || got.header.Get("Retry-After") != "1" ||
		strings.Contains(got.text, "10.1.2.3") || s.served.Load() != 0 {
		t.Errorf("answered %s", got.text)
	}
	for _, answer := range []func(*fiber.Ctx, error) error{gate.Failed, func(c *fiber.Ctx, _ error) error { return c.Next() }} {
		var told error
		s = open(t, func(o *gate.Options) {
			fail(faulty{take: fault})(o)
			o.Failed = func(c *fiber.Ctx, err error) error {
				told = err
				return answer(c, err)
			}
		}, nil)
		if got := s.ask(""); !errors.Is(told, fault) || (got.status == 200) != (s.served.Load() == 1) {
			t.Errorf("answered %d, told %v", got.status, told)
		}
	}
}

// What cannot be given back has counted, and what is left then is what was left before.
func TestRelease_LimiterFails_HasCounted(t *testing.T) {
	always := func(o *gate.Options) { o.Release = func(int) bool { return true } }
	for name, f := range map[string]faulty{"release": {release: throttle.ErrUnavailable}, "peek": {peek: throttle.ErrUnavailable}} {
		s := open(t, func(o *gate.Options) { always(o); fail(f)(o) }, nil)
		s.ask("").is(t, 200, `"minute";r=1;t=60`)
		if want := map[string]int{"release": 1, "peek": 2}[name]; s.remaining() != want {
			t.Errorf("%s: %d remain, want %d", name, s.remaining(), want)
		}
	}
}

// What a Take that failed may have charged is given back by its id; a counter knows no ids.
func TestFailed_ChargeUnknown_IsGivenBackByID(t *testing.T) {
	for exact, want := range map[bool]int{true: 2, false: 1} {
		var s *site
		s = open(t, func(o *gate.Options) {
			if exact {
				policy, err := throttle.ParsePolicy("minute=2/60s")
				if err != nil {
					t.Fatal(err)
				}
				o.Limiter = inMemoryBy(t, policy, nil)
			}
			limiter := o.Limiter
			fail(faulty{lost: errors.New("the reply is lost")})(o)
			o.Failed = func(c *fiber.Ctx, err error) error {
				if s.limiter = limiter; s.remaining() != want {
					t.Errorf("exact %v: %d remain, want %d", exact, s.remaining(), want)
				}
				return gate.Failed(c, err)
			}
		}, nil)
		s.ask("").is(t, 503, "")
	}
}

func TestFailed_ReleaseHangs_IsBounded(t *testing.T) {
	s := open(t, fail(faulty{lost: errors.New("the reply is lost"), hangs: true}), nil)
	s.ask("").is(t, 503, "")
}

// queue lets so many requests wait, each for a window.
func queue(t *testing.T, window time.Duration, waiting int) throttle.Limiter {
	t.Helper()
	bucket, err := throttle.NewLeakyBucket(throttle.Tier{Name: "pace", Limit: 1, Window: window}, waiting)
	if err != nil {
		t.Fatal(err)
	}
	return inMemoryBy(t, bucket, func() int64 { return noon })
}

// A queue lets requests through at even distances.
func TestNew_Queue_HoldsBack(t *testing.T) {
	const apart = 30 * time.Millisecond
	let := make(chan time.Time, 3)
	s := open(t, func(o *gate.Options) { o.Limiter = queue(t, apart, 2) }, func(*fiber.Ctx) error { let <- time.Now(); return nil })
	began := time.Now()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { s.ask("") })
	}
	all.Wait()
	for i := range 3 {
		if after := (<-let).Sub(began); after < time.Duration(i)*apart {
			t.Errorf("request %d was let through after %v", i, after)
		}
	}
	s.ask("").is(t, 429, "")
}

// A deadline in front of the gate ends the wait, and the slot in the queue is free again.
func TestNew_DeadlineInQueue_Is503(t *testing.T) {
	s := open(t, func(o *gate.Options) { o.Limiter = queue(t, time.Hour, 1) }, nil, func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), 10*time.Millisecond)
		defer cancel()
		c.SetUserContext(ctx)
		return c.Next()
	})
	s.ask("").is(t, 200, "")
	for range 3 {
		got := s.ask("")
		if got.is(t, 503, ""); !strings.Contains(got.text, `"urn:mailgate:problem:busy"`) || got.header.Get("Retry-After") != "1" {
			t.Errorf("%s %v", got.text, got.header)
		}
	}
}

// What the second gate of a route refuses, the first gives back if it is told to.
func TestNew_TwoGates_FirstGivesBack(t *testing.T) {
	for given, want := range map[bool]int{true: 8, false: 7} {
		second, err := gate.New(gate.Options{Limiter: inMemory(t, "minute=2/60s", nil), Name: "inner"})
		if err != nil {
			t.Fatal(err)
		}
		outer := inMemory(t, "minute=10/60s", nil)
		s := open(t, func(o *gate.Options) {
			o.Limiter = outer
			o.Release = func(status int) bool { return given && status == 429 }
		}, second)
		for _, status := range []int{404, 404, 429} { // behind the second gate there is nothing
			s.ask("").is(t, status, "")
		}
		if s.limiter = outer; s.remaining() != want {
			t.Errorf("given back %v: %d remain", given, s.remaining())
		}
	}
}
