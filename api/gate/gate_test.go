package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const noon = int64(1_795_176_000_000) // 2026-11-20T12:00:00Z

// here is the limiter's key of the requests of these tests.
var here = gate.KeyOfPeer(netip.IPv4Unspecified())

// site is a program behind a gate.
type site struct {
	t       *testing.T
	app     *fiber.App
	clock   atomic.Int64
	limiter *throttle.Limiter
	served  atomic.Int64 // requests that were let through
}

// open puts a handler behind the gate, which admits two requests a minute.
func open(t *testing.T, change func(*gate.Options[*fiber.Ctx]), handler fiber.Handler, front ...any) *site {
	t.Helper()
	s := &site{t: t, app: fiber.New()}
	s.clock.Store(noon)
	s.limiter = apitest.Limiter(throttletest.Policy(t, "minute=2/60s"), s.clock.Load)
	o := gate.Options[*fiber.Ctx]{Limiter: s.limiter}
	if change != nil {
		change(&o)
	}
	protect := must.Get(gate.Fiber(o))(t)
	if handler == nil {
		handler = func(c *fiber.Ctx) error { return c.SendString("through") }
	}
	s.app.Use(append(front, recover.New())...)
	s.app.All("/*", protect, func(c *fiber.Ctx) error {
		s.served.Add(1)
		return handler(c)
	})
	return s
}

type reply struct {
	status int
	header http.Header
	text   string
}

// ask sends one request with a value of X-Key.
func (s *site) ask(key string) reply {
	s.t.Helper()
	request := httptest.NewRequest("GET", "/page", nil)
	request.Header.Set("X-Key", key)
	request.Header.Set("X-Forwarded-For", key[:min(len(key), 15)])
	response := must.Get(s.app.Test(request, -1))(s.t)
	defer response.Body.Close()
	return reply{response.StatusCode, response.Header, string(must.Get(io.ReadAll(response.Body))(s.t))}
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
	return must.Get(s.limiter.Peek(context.Background(), here))(s.t).Remaining()
}

func byHeader(o *gate.Options[*fiber.Ctx]) {
	o.Key = func(c *fiber.Ctx) string { return c.Get("X-Key") }
}

// Two are let through and the third is not, to the letter.
func TestNew_ThirdRequest_Is429(t *testing.T) {
	var seen string
	s := open(t, nil, nil, func(c *fiber.Ctx) error { // in front
		err := c.Next()
		seen = strings.Clone(c.GetRespHeader("RateLimit"))
		return err
	})
	got := s.ask("")
	if got.is(t, 200, `"minute";r=1;t=60;pk=:`); seen != got.header.Get("RateLimit") {
		t.Errorf("a middleware in front reads %q", seen)
	}
	s.ask("").is(t, 200, `"minute";r=0;t=60;pk=:`)
	s.clock.Add(500)
	got = s.ask("")
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

// partitionOf is the pk of both headers, eight bytes in base64.
func partitionOf(t *testing.T, header http.Header) string {
	t.Helper()
	one, other := partition.FindStringSubmatch(header.Get("RateLimit")), partition.FindStringSubmatch(header.Get("RateLimit-Policy"))
	if one == nil || other == nil || one[1] != other[1] {
		t.Fatalf("headers %v", header)
	}
	return one[1]
}

// Which requests are counted together, and under which key of the limiter.
func TestNew_Keys_AreCountedApart(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, tt := range []struct {
		name        string
		options     func(*gate.Options[*fiber.Ctx])
		first, then string // two by the first reach the limit
		status      int    // of one by then
		key         string // of the first
	}{
		{"the address, whatever a header says", nil, "1.1.1.1", "2.2.2.2", 429, here},
		{"keys", byHeader, "a", "b", 200, gate.KeyOf("a")},
		{"no key is the address", byHeader, "", "", 429, here},
		{"a key is no address", byHeader, "", "0.0.0.0", 200, gate.KeyOfPeer(netip.MustParseAddr("::ffff:0.0.0.0"))},
		{"long keys", byHeader, long + "a", long + "b", 200, gate.KeyOf(long + "a")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, tt.options, nil)
			one := partitionOf(t, s.ask(tt.first).header)
			if again, second := partitionOf(t, s.ask(tt.first).header), partitionOf(t, open(t, tt.options, nil).ask(tt.first).header); again != one || second != one {
				t.Errorf("one caller has the partitions %s, %s and, at another gate, %s", one, again, second)
			}
			then := s.ask(tt.then)
			then.is(t, tt.status, "")
			if other := partitionOf(t, then.header); (other == one) != (tt.status == 429) {
				t.Errorf("partitions %s and %s", one, other)
			}
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

// What is refunded after which answer, and what the headers then say.
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
			s := open(t, func(o *gate.Options[*fiber.Ctx]) { o.Release = func(status int) bool { return status < 400 } }, tt.handler)
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
	s := open(t, func(o *gate.Options[*fiber.Ctx]) {
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

// faulty puts a hook before the options' limiter.
func faulty(hook throttletest.Hook) func(*gate.Options[*fiber.Ctx]) {
	return func(o *gate.Options[*fiber.Ctx]) {
		f := &throttletest.Faulty{}
		f.On(hook)
		o.Limiter = f.Break(o.Limiter)
	}
}

// fails has one call fail, and a release hang as long as it may.
func fails(call string, hangs bool) throttletest.Hook {
	return func(ctx context.Context, event, _ string) error {
		if _, bounded := ctx.Deadline(); hangs && event == "release" && bounded {
			<-ctx.Done()
			return ctx.Err()
		}
		if event == call {
			return throttletest.ErrFault
		}
		return nil
	}
}

// A limiter that fails lets no request through, unless Options.Failed does.
func TestFailed_LimiterFails_Is503(t *testing.T) {
	broken := faulty(fails("take", false))
	s := open(t, broken, nil)
	got := s.ask("")
	got.is(t, 503, "")
	if !strings.Contains(got.text, `/docs/problems.md#store-unavailable"`) || got.header.Get("Retry-After") != "1" ||
		strings.Contains(got.text, "10.1.2.3") || s.served.Load() != 0 {
		t.Errorf("answered %s", got.text)
	}
	var told error
	s = open(t, func(o *gate.Options[*fiber.Ctx]) {
		broken(o)
		o.Failed = func(c *fiber.Ctx, err error) error { told = err; return c.Next() }
	}, nil)
	if s.ask("").is(t, 200, ""); !errors.Is(told, throttletest.ErrFault) || s.served.Load() != 1 {
		t.Errorf("told %v, %d let through", told, s.served.Load())
	}
}

// What cannot be refunded has counted. What a Take that failed may have charged is refunded by its
// id, which a counter does not know, or within a second not at all.
func TestRelease_LimiterFails_HasCounted(t *testing.T) {
	tiers := throttletest.Policy(t, "minute=2/60s")
	counter := must.Get(throttle.NewFixedWindow(tiers.Tiers()[0]))(t)
	for _, tt := range []struct {
		name      string
		algorithm throttle.Algorithm
		hook      throttletest.Hook
		status    int
		header    string
		remaining int
	}{
		{"the release of an answer hangs", tiers, fails("", true), 200, `"minute";r=1;t=60`, 1},
		{"the look after it fails", tiers, fails("peek", false), 200, `"minute";r=1;t=60`, 2}, // and the header is the one before
		{"a take fails", tiers, fails("taken", false), 503, "", 2},
		{"a take of a counter fails", counter, fails("taken", false), 503, "", 1},
		{"a take fails and its release hangs", tiers, fails("taken", true), 503, "", 1},
	} {
		limiter := apitest.Limiter(tt.algorithm, nil)
		s := open(t, func(o *gate.Options[*fiber.Ctx]) {
			o.Limiter, o.Release = limiter, func(status int) bool { return status == 200 }
			faulty(tt.hook)(o)
		}, nil)
		s.ask("").is(t, tt.status, tt.header)
		if s.limiter = limiter; s.remaining() != tt.remaining {
			t.Errorf("%s: %d remain, want %d", tt.name, s.remaining(), tt.remaining)
		}
	}
}

// queue lets so many requests wait, each for a window.
func queue(t *testing.T, window time.Duration, waiting int) *throttle.Limiter {
	t.Helper()
	bucket := must.Get(throttle.NewLeakyBucket(throttle.Tier{Name: "pace", Limit: 1, Window: window}, waiting))(t)
	return apitest.Limiter(bucket, func() int64 { return noon })
}

// A queue lets requests through at even distances.
func TestNew_Queue_HoldsBack(t *testing.T) {
	const apart = 30 * time.Millisecond
	let := make(chan time.Time, 3)
	s := open(t, func(o *gate.Options[*fiber.Ctx]) { o.Limiter = queue(t, apart, 2) }, func(*fiber.Ctx) error { let <- time.Now(); return nil })
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
	s := open(t, func(o *gate.Options[*fiber.Ctx]) { o.Limiter = queue(t, time.Hour, 1) }, nil, func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), 10*time.Millisecond)
		defer cancel()
		c.SetUserContext(ctx)
		return c.Next()
	})
	s.ask("").is(t, 200, "")
	for range 3 {
		got := s.ask("")
		if got.is(t, 503, ""); !strings.Contains(got.text, `/docs/problems.md#busy"`) || got.header.Get("Retry-After") != "1" {
			t.Errorf("%s %v", got.text, got.header)
		}
	}
}

// What the second gate of a route refuses, the first refunds if it is told to.
func TestNew_TwoGates_FirstGivesBack(t *testing.T) {
	for given, want := range map[bool]int{true: 8, false: 7} {
		second := must.Get(gate.Fiber(gate.Options[*fiber.Ctx]{Limiter: apitest.Limiter(throttletest.Policy(t, "minute=2/60s"), nil), Name: "inner"}))(t)
		outer := apitest.Limiter(throttletest.Policy(t, "minute=10/60s"), nil)
		s := open(t, func(o *gate.Options[*fiber.Ctx]) {
			o.Limiter = outer
			o.Release = func(status int) bool { return given && status == 429 }
		}, second)
		for _, status := range []int{404, 404, 429} { // behind the second gate there is nothing
			s.ask("").is(t, status, "")
		}
		if s.limiter = outer; s.remaining() != want {
			t.Errorf("refunded %v: %d remain", given, s.remaining())
		}
	}
}
