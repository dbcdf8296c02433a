package api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// withoutKey is how many requests without a valid key are in progress at once.
var withoutKey = max(8, 2*runtime.GOMAXPROCS(0))

// While requests without a valid key hold their whole share the next one is a 503 after a quarter of a
// second, on every path and with a wrong key. Requests with a key are answered, and so is the listener
// of operations.
func TestShare_FullWithoutAKey_RefusesOnlyThose(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	r, limiter := newFaulty(t, setup{options: func(o *apitest.Options) { o.Ops = true }})
	ops := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go r.API.ServeOps(ops)
	token := r.send("held@example.com").token()
	limiter.On(func(_ context.Context, event, _ string) error {
		if event == "peek" {
			entered <- struct{}{}
			<-leave
		}
		return nil
	})
	var held sync.WaitGroup
	for range withoutKey {
		held.Go(func() { r.count(token).is(t, 200, "") })
		<-entered
	}
	const wrongKey = "the-key-of-nothing"
	type ask struct{ method, path, key, body string }
	asks := []ask{
		{"GET", "/docs", "", ""}, {"GET", "/openapi.yaml", "", ""}, {"GET", "/openapi.json", "", ""}, {"GET", "/livez", "", ""}, {"GET", "/readyz", "", ""},
		{"GET", "/countdown/abc", "", ""}, {"GET", "/countdown.js", "", ""}, {"GET", "/countdown.d.ts", "", ""},
		{"GET", "/admin", "", ""}, {"GET", "/admin/console/console.js", "", ""}, {"GET", "/nothing", "", ""}, {"OPTIONS", "/countdown/abc", "", ""},
		{"POST", "/send-code", wrongKey, `{"email":"a@example.com"}`}, {"GET", "/admin/figures", wrongKey, ""},
	}
	for _, route := range routesWithKeys {
		asks = append(asks, ask{route.method, route.path, "", route.body})
	}
	var refused sync.WaitGroup
	for _, ask := range asks {
		refused.Go(func() {
			began := time.Now()
			got := r.do(ask.method, ask.path, ask.key, ask.body)
			if problem := got.body["type"]; got.status != 503 || problem != "/docs#busy" || got.header.Get("Retry-After") != "1" {
				t.Errorf("%s %s: %d %v", ask.method, ask.path, got.status, got.header)
			}
			anywhere := strings.HasPrefix(ask.path, "/countdown")
			if (got.header.Get("Access-Control-Allow-Origin") == "*") != anywhere {
				t.Errorf("%s %s: may pages from anywhere read it: %v", ask.method, ask.path, !anywhere)
			}
			if took := time.Since(began); took < 250*time.Millisecond {
				t.Errorf("%s %s: refused after %v", ask.method, ask.path, took)
			}
		})
	}
	refused.Wait()
	r.do("GET", "/docs", appKey, "").is(t, 503, "busy")
	r.send("a@example.com").is(t, 200, "")
	r.do("POST", "/verify-code", "another-key", `{"email":"a@example.com","code":"000000"}`).is(t, 422, "code-incorrect")
	for path, want := range map[string]string{
		"/livez": "live", "/metrics": fmt.Sprintf("mailgate_http_requests_total{route=\"without-key\",status=\"503\"} %d\n", len(asks)),
	} {
		answer := must.Get(http.Get("http://" + ops.Addr().String() + path))(t)
		if text := string(must.Get(io.ReadAll(answer.Body))(t)); answer.StatusCode != 200 || !strings.Contains(text, want) {
			t.Errorf("%s of the listener of operations: %d, without %s", path, answer.StatusCode, want)
		}
		answer.Body.Close()
	}
	close(leave)
	held.Wait()
	for range 2 * withoutKey {
		r.do("GET", "/livez", "", "").is(t, 200, "")
	}
}

// A client that does not read its answer holds its part of the share for a moment only.
func TestShare_SlowReaders_LeaveIt(t *testing.T) {
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.Docs.OpenAPI = append(slices.Clone(o.Docs.OpenAPI), strings.Repeat("# more than a socket holds\n", 1<<20)...)
	}})
	for range withoutKey {
		c := must.Get(net.Dial("tcp", r.Addr))(t)
		defer c.Close()
		must.Get(io.WriteString(c, "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
		must.Get(c.Read(make([]byte, 1)))(t)
	}
	began := time.Now()
	servertest.Eventually(t, "room for another", func() bool { return r.do("GET", "/livez", "", "").status == 200 })
	if took := time.Since(began); took > 5*time.Second { // after ten the answers are cut off
		t.Errorf("what is not read was waited for: %v", took)
	}
}

// However many requests come with one key, so many are decided at once and no more; another key's do
// not wait for them, and none is refused.
func TestCaller_ManyAtOnce_SomeAreDecided(t *testing.T) {
	most := 32 * runtime.GOMAXPROCS(0)
	r, limiter := newFaulty(t, setup{options: patient})
	var held atomic.Int64
	leave := make(chan struct{})
	limiter.On(func(_ context.Context, event, key string) error {
		if event == "take" && strings.HasPrefix(key, "flood") {
			held.Add(1)
			<-leave
		}
		return nil
	})
	var group sync.WaitGroup
	for n := range 3 * most {
		group.Go(func() { r.send(fmt.Sprintf("flood%d@example.com", n)).is(t, 200, "") })
	}
	servertest.Eventually(t, "the flood", func() bool {
		_, after, _ := strings.Cut(r.has(t), "\nmailgate_http_connections ")
		line, _, _ := strings.Cut(after, "\n")
		open, err := strconv.Atoi(line)
		return err == nil && open >= 3*most && held.Load() >= int64(most)
	})
	r.do("POST", "/send-code", "another-key", `{"email":"a@example.com"}`).is(t, 200, "")
	if n := held.Load(); n != int64(most) {
		t.Errorf("%d are decided at once, want %d", n, most)
	}
	close(leave)
	group.Wait()
}

// patient cuts off no send while a test holds it up.
func patient(o *apitest.Options) { o.SendDeadline = time.Minute }

// A send that waits for the relay does not count as one that is being decided.
func TestCaller_RelaySlow_DecidesOthers(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *apitest.Options) { patient(o); o.Relay = sender }})
	var group sync.WaitGroup
	for n := range 32*runtime.GOMAXPROCS(0) + 2 {
		group.Go(func() { r.send(fmt.Sprintf("patient%d@example.com", n)).is(t, 200, "") })
		<-sender.entered
	}
	close(sender.leave)
	group.Wait()
}

// A key with the most requests in progress that it may have gets a 503 at once, and nothing is charged.
// Other keys and operators are answered.
func TestCaller_Full_LeavesRoomForOthers(t *testing.T) {
	const most = 4
	sender := newGated()
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.MaxConnections = 2 * most
		o.Relay = sender
		patient(o)
	}})
	var group sync.WaitGroup
	for n := range most {
		group.Go(func() { r.send(fmt.Sprintf("flood%d@example.com", n)).is(t, 200, "") })
		<-sender.entered
	}
	for _, route := range routesWithKeys {
		if route.key() != appKey {
			continue
		}
		got := r.do(route.method, route.path, appKey, route.body)
		got.is(t, 503, "busy")
		got.carries(t, map[string]string{"Retry-After": "1"})
	}
	r.do("GET", "/mailboxes/one-more@example.com", "another-key", "").is(t, 200, "")
	r.do("GET", "/admin/mailboxes/one-more@example.com", opsKey, "").is(t, 200, "")
	r.do("GET", "/readyz", "", "").is(t, 200, "")
	r.charged("elsewhere@example.com", 0)
	r.has(t, `mailgate_sends_total{door="http",limit="",outcome="busy",rule=""} 1`)
	close(sender.leave)
	group.Wait()
	for range 2 * most {
		r.do("GET", "/mailboxes/one-more@example.com", appKey, "").is(t, 200, "")
	}
}

// A client that requests pages without a key and reads none of them takes little more memory than a
// silent one: there is one copy of a page for all.
func TestOpenAPI_Unread_TakesLittleMemory(t *testing.T) {
	const clients, most = 100, 64 << 10
	r := newRig(t, setup{alone: true, options: func(o *apitest.Options) { o.Log = slog.New(slog.DiscardHandler) }}) // the log of all tests would grow
	const ask = "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"
	first := r.dial(ask)
	if size := len(first.read("GET", "/openapi.yaml").text); size < most/2 {
		t.Fatalf("the page has %d bytes, too few for this test", size)
	}
	before := heap()
	for range clients {
		w := r.dial("")
		if err := w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		w.write(strings.Repeat(ask, 60)) // whose answers are more than the sockets hold
		must.Get(w.reader.Peek(1))(t)
	}
	if each := (heap() - before) / clients; each > most {
		t.Errorf("each of them takes %d bytes, want at most %d", each, most)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
