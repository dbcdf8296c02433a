package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// While requests without a valid key hold their whole share the next one is a 503 after a quarter of a
// second, on every path and with a wrong key. Requests with a key are answered.
func TestShare_FullWithoutAKey_RefusesOnlyThose(t *testing.T) {
	const most = 3
	entered, leave := make(chan struct{}), make(chan struct{})
	r := newRig(t, setup{options: func(o *api.Options) {
		o.MaxWithoutKey = most
		o.Ready = func(context.Context) error {
			entered <- struct{}{}
			<-leave
			return nil
		}
	}})
	var held sync.WaitGroup
	for range most {
		held.Go(func() { r.do("GET", "/readyz", "", "").is(t, 200, "") })
		<-entered
	}
	const wrongKey = "the-key-of-nothing"
	asks := []struct{ method, path, key, body string }{
		{"GET", "/metrics", "", ""}, {"GET", "/docs", "", ""}, {"GET", "/openapi.yaml", "", ""}, {"GET", "/livez", "", ""}, {"GET", "/readyz", "", ""},
		{"GET", "/countdown/abc", "", ""}, {"GET", "/countdown.js", "", ""}, {"GET", "/countdown.d.ts", "", ""},
		{"GET", "/admin", "", ""}, {"GET", "/admin/console/console.js", "", ""}, {"GET", "/nothing", "", ""}, {"OPTIONS", "/countdown/abc", "", ""},
		{"GET", "/metrics", wrongKey, ""}, {"POST", "/send-code", wrongKey, `{"email":"a@example.com"}`}, {"GET", "/admin/figures", wrongKey, ""},
	}
	for _, route := range routesWithKeys {
		asks = append(asks, struct{ method, path, key, body string }{route.method, route.path, "", route.body})
	}
	began := time.Now()
	for _, ask := range asks {
		got := r.do(ask.method, ask.path, ask.key, ask.body)
		got.is(t, 503, "busy")
		if got.header.Get("Retry-After") != "1" || got.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %v", ask.method, ask.path, got.header)
		}
		anywhere := strings.HasPrefix(ask.path, "/countdown")
		if (got.header.Get("Access-Control-Allow-Origin") == "*") != anywhere {
			t.Errorf("%s %s: may pages from anywhere read it: %v", ask.method, ask.path, !anywhere)
		}
	}
	if took := time.Since(began); took < time.Duration(len(asks))*200*time.Millisecond {
		t.Errorf("%d refusals took %v", len(asks), took)
	}
	r.do("GET", "/docs", appKey, "").is(t, 503, "busy")
	r.do("GET", "/metrics", opsKey, "").is(t, 503, "busy")
	r.send("a@example.com").is(t, 200, "")
	r.do("GET", "/mailboxes/a@example.com", "another-key", "").is(t, 200, "")
	close(leave)
	held.Wait()
	text := r.do("GET", "/metrics", opsKey, "").text
	if want := fmt.Sprintf("mailgate_http_requests_total{route=\"without-key\",status=\"503\"} %d\n", len(asks)); !strings.Contains(text, want) {
		t.Errorf("/metrics lacks %s", want)
	}
	for range 2 * most {
		r.do("GET", "/livez", "", "").is(t, 200, "")
	}
}

// While the whole share is held, the listener of operations answers.
func TestShare_Full_OpsListenerAnswers(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	r := newRig(t, setup{options: func(o *api.Options) {
		o.Ops, o.MaxWithoutKey = true, 1
		o.Ready = func(context.Context) error {
			entered <- struct{}{}
			<-leave
			return nil
		}
	}})
	ops := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go r.server.ServeOps(ops)
	held := make(chan struct{})
	go func() {
		defer close(held)
		r.do("GET", "/readyz", "", "").is(t, 200, "")
	}()
	<-entered
	r.do("GET", "/livez", "", "").is(t, 503, "busy")
	for _, path := range []string{"/livez", "/metrics"} {
		got := must(http.Get("http://" + ops.Addr().String() + path))(t)
		got.Body.Close()
		if got.StatusCode != 200 {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
	}
	close(leave)
	<-held
}

// A client that does not read its answer holds its part of the share for a moment only.
func TestShare_SlowReaders_LeaveIt(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) {
		o.MaxWithoutKey = 2
		o.OpenAPI = append(slices.Clone(o.OpenAPI), strings.Repeat("# more than a socket holds\n", 1<<20)...)
	}})
	for range 2 {
		c := must(net.Dial("tcp", r.addr))(t)
		defer c.Close()
		must(io.WriteString(c, "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
		must(c.Read(make([]byte, 1)))(t)
	}
	began := time.Now()
	servertest.Eventually(t, "room for another", func() bool { return r.do("GET", "/livez", "", "").status == 200 })
	if took := time.Since(began); took > 5*time.Second { // after ten the answers are cut off
		t.Errorf("what is not read was waited for: %v", took)
	}
}

// A flood without a key is answered or refused, and a key's sends beside it all go out.
func TestShare_Floods_SendsGoOut(t *testing.T) {
	r := newRig(t, setup{})
	quiet := r.medianSend(t, "quiet")
	for name, request := range map[string]string{
		"metrics":   "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
		"docs":      "GET /docs HTTP/1.1\r\nHost: x\r\n\r\n",
		"countdown": "GET /countdown/abc HTTP/1.1\r\nHost: x\r\n\r\n",
		"wrong key": "POST /send-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answers, ended := flood(ctx, r.addr, request)
			servertest.Eventually(t, "the flood to be refused", func() bool { return answers.refused.Load() > 100 })
			beside := r.medianSend(t, strings.ReplaceAll(name, " ", "-"))
			cancel()
			ended.Wait()
			t.Logf("a send takes %v in quiet and %v beside the flood; %d requests refused, %d answered", quiet, beside, answers.refused.Load(), answers.other.Load())
		})
	}
}

func (r *rig) medianSend(t *testing.T, who string) time.Duration {
	t.Helper()
	var took []time.Duration
	for n := range 15 {
		began := time.Now()
		r.send(fmt.Sprintf("%s%d@example.com", who, n)).is(t, 200, "")
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

type answers struct{ refused, other atomic.Int64 }

// flood sends one request again and again over 200 connections until ctx ends.
func flood(ctx context.Context, addr, request string) (*answers, *sync.WaitGroup) {
	counts, ended := new(answers), new(sync.WaitGroup)
	for range 200 {
		ended.Go(func() {
			for ctx.Err() == nil {
				if c, err := net.Dial("tcp", addr); err == nil {
					counts.ask(ctx, c, request)
					c.Close()
				}
			}
		})
	}
	return counts, ended
}

// ask sends the request over one connection for as long as it is answered.
func (a *answers) ask(ctx context.Context, c net.Conn, request string) {
	reader := bufio.NewReader(c)
	for ctx.Err() == nil {
		if _, err := io.WriteString(c, request); err != nil {
			return
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return
		}
		if response.StatusCode == http.StatusServiceUnavailable {
			a.refused.Add(1)
		} else {
			a.other.Add(1)
		}
	}
}

// A held limiter holds the sends of a flood until it is let go, and knows how many it held at most.
type held struct {
	throttle.Historian
	now, peak atomic.Int64
	leave     chan struct{}
}

func (h *held) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if strings.HasPrefix(key, "flood") {
		now := h.now.Add(1)
		defer h.now.Add(-1)
		for was := h.peak.Load(); now > was && !h.peak.CompareAndSwap(was, now); was = h.peak.Load() {
		}
		<-h.leave
	}
	return h.Historian.Take(ctx, key, id)
}

// However many requests come with one key, so many are decided at once and no more; another key's do
// not wait for them, and none is refused.
func TestCaller_ManyAtOnce_SomeAreDecided(t *testing.T) {
	most := 8 * runtime.GOMAXPROCS(0)
	limiter := &held{leave: make(chan struct{})}
	r := newRig(t, setup{rules: func(r *rig, own *rules.Rule) []rules.Rule {
		limiter.Historian = r.limiter
		own.Limiter = limiter
		return nil
	}})
	var group sync.WaitGroup
	for n := range 3 * most {
		group.Go(func() { r.send(fmt.Sprintf("flood%d@example.com", n)).is(t, 200, "") })
	}
	servertest.Eventually(t, "the flood", func() bool {
		_, after, _ := strings.Cut(r.do("GET", "/metrics", opsKey, "").text, "\nmailgate_http_connections ")
		line, _, _ := strings.Cut(after, "\n")
		open, err := strconv.Atoi(line)
		return err == nil && open >= 3*most && limiter.now.Load() >= int64(most)
	})
	r.do("POST", "/send-code", "another-key", `{"email":"a@example.com"}`).is(t, 200, "")
	close(limiter.leave)
	group.Wait()
	if peak := limiter.peak.Load(); peak != int64(most) {
		t.Errorf("%d were decided at once, want %d", peak, most)
	}
}

// A send that waits for the relay does not count as one that is being decided.
func TestCaller_RelaySlow_DecidesOthers(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *api.Options) { o.Relay = sender }})
	var group sync.WaitGroup
	for n := range 8*runtime.GOMAXPROCS(0) + 2 {
		group.Go(func() { r.send(fmt.Sprintf("patient%d@example.com", n)).is(t, 200, "") })
		<-sender.entered
	}
	close(sender.leave)
	group.Wait()
}
