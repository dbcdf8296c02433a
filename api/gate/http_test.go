package gate_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func TestHTTP_SecondRequest_Is429(t *testing.T) {
	protect := must.Get(gate.HTTP(gate.Options[*gate.Exchange]{
		Limiter: apitest.Limiter(throttletest.Policy(t, "minute=1/60s"), func() int64 { return noon }), Key: func(x *gate.Exchange) string { return x.R.Header.Get("X-User") },
	}))(t)
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	partitions := map[string]bool{}
	for _, tt := range []struct {
		user, from string
		status     int
	}{
		{"", "203.0.113.7:1", 204}, {"", "203.0.113.7:2", 429}, {"", "[::ffff:203.0.113.7]:3", 429}, {"", "203.0.113.8:1", 204},
		{"", "[2001:db8::1]:1", 204}, {"", "[2001:db8::2]:1", 429}, {"", "[2001:db8:0:1::1]:1", 204}, {"", "@", 204}, {"", "@", 429},
		{"bob", "203.0.113.7:3", 204}, {"bob", "203.0.113.9:1", 429},
	} {
		r, w := httptest.NewRequest("POST", "/", nil), httptest.NewRecorder()
		r.RemoteAddr = tt.from
		r.Header.Set("X-User", tt.user)
		handler.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.HasPrefix(w.Header().Get("RateLimit"), `"minute";r=0;t=60;pk=:`) {
			t.Errorf("%q from %s: %d %v", tt.user, tt.from, w.Code, w.Header())
		}
		if tt.status == 429 && (w.Header().Get("Retry-After") != "60" || !strings.Contains(w.Body.String(), `"limit":"minute","wait_ms":60000`)) {
			t.Errorf("%v %s", w.Header(), w.Body)
		}
		partitions[partitionOf(t, w.Header())] = true
	}
	if len(partitions) != 6 {
		t.Errorf("%d partitions of 6 keys", len(partitions))
	}
}

// onHTTP puts a handler behind a gate that admits two a minute, and returns the answer to one request.
func onHTTP(t *testing.T, o gate.Options[*gate.Exchange], handler http.HandlerFunc) func() *httptest.ResponseRecorder {
	t.Helper()
	protected := must.Get(gate.HTTP(o))(t)(handler)
	return func() (w *httptest.ResponseRecorder) {
		w = httptest.NewRecorder()
		defer func() { // as a server does
			if recover() != nil {
				w.Code = 500
			}
		}()
		protected.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w
	}
}

// The address that httptest gives its requests.
var tester = gate.KeyOfPeer(netip.MustParseAddr("192.0.2.1"))

// What is refunded after which answer, and what its header then says. The header of an answer that is
// written in parts is that of its first part.
func TestHTTP_Release_GivesBackByStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		handler   http.HandlerFunc
		status    int
		rateLimit string
		remaining int
	}{
		"a success":       {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }, 200, `"minute";r=2;t=0;`, 2},
		"nothing written": {func(http.ResponseWriter, *http.Request) {}, 200, `"minute";r=2;t=0;`, 2},
		"a failure":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, 403, `"minute";r=1;t=60;`, 1},
		"flushed":         {func(w http.ResponseWriter, _ *http.Request) { must.OK(t, http.NewResponseController(w).Flush()) }, 200, `"minute";r=2;t=0;`, 2},
		"a panic":         {func(http.ResponseWriter, *http.Request) { panic("broken") }, 500, `"minute";r=1;t=60;`, 1},
		"its own field":   {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("RateLimit", "own") }, 200, "own", 2},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := apitest.Limiter(throttletest.Policy(t, "minute=2/60s"), func() int64 { return noon })
			ask := onHTTP(t, gate.Options[*gate.Exchange]{Limiter: limiter, Release: func(status int) bool { return status < 400 }}, tt.handler)
			w := ask()
			left := must.Get(limiter.Peek(t.Context(), tester))(t).Remaining()
			if w.Code != tt.status || !strings.HasPrefix(w.Header().Get("RateLimit"), tt.rateLimit) || left != tt.remaining {
				t.Errorf("%d %v, %d remain", w.Code, w.Header(), left)
			}
			if policy := w.Header().Get("RateLimit-Policy"); (policy == "") != (tt.rateLimit == "own") {
				t.Errorf("RateLimit-Policy is %q", policy)
			}
		})
	}
}

// An early hint comes before the answer, whose status counts.
func TestHTTP_EarlyHint_IsNoAnswer(t *testing.T) {
	limiter := apitest.Limiter(throttletest.Policy(t, "minute=2/60s"), nil)
	protect := must.Get(gate.HTTP(gate.Options[*gate.Exchange]{Limiter: limiter, Release: func(status int) bool { return status == 103 }}))(t)
	server := httptest.NewServer(protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(103)
		w.WriteHeader(404)
	})))
	defer server.Close()
	response := must.Get(http.Get(server.URL))(t)
	response.Body.Close()
	if response.StatusCode != 404 || !strings.HasPrefix(response.Header.Get("RateLimit"), `"minute";r=1;`) {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
}

// A limiter that fails lets no request through, unless Failed does. What may have been counted is
// refunded.
func TestHTTP_LimiterFails_Is503(t *testing.T) {
	faults := &throttletest.Faulty{}
	limiter := faults.Break(apitest.Limiter(throttletest.Policy(t, "minute=1/60s"), nil))
	faults.Fail("taken")
	served := 0
	o := gate.Options[*gate.Exchange]{Limiter: limiter}
	handler := func(http.ResponseWriter, *http.Request) { served++ }
	w := onHTTP(t, o, handler)()
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `/docs/problems.md#store-unavailable"`) || served != 0 {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	o.Failed = func(x *gate.Exchange, err error) error {
		if !errors.Is(err, throttletest.ErrFault) {
			t.Errorf("told %v", err)
		}
		return x.Next()
	}
	if w := onHTTP(t, o, handler)(); w.Code != 200 || served != 1 {
		t.Errorf("%d, served %d", w.Code, served)
	}
	o.Failed = func(_ *gate.Exchange, err error) error { return err }
	if w := onHTTP(t, o, handler)(); w.Code != 500 || strings.Contains(w.Body.String(), "10.1.2.3") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	faults.Fail()
	if left := must.Get(limiter.Peek(t.Context(), tester))(t).Remaining(); left != 1 {
		t.Error("what a failed take had counted is not refunded")
	}
}

// A refusal has the name and the answer of the options.
func TestHTTP_Refuse_Answers(t *testing.T) {
	o := gate.Options[*gate.Exchange]{Limiter: apitest.Limiter(throttletest.Policy(t, "minute=1/60s"), nil), Name: "logins"}
	ask := onHTTP(t, o, func(http.ResponseWriter, *http.Request) {})
	ask()
	if w := ask(); w.Code != 429 || !strings.Contains(w.Body.String(), `"rule":"logins"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	o.Refuse = func(x *gate.Exchange, v throttle.Verdict) error {
		http.Error(x.W, v.Limit, http.StatusTeapot)
		return nil
	}
	if w := onHTTP(t, o, nil)(); w.Code != 418 || w.Body.String() != "minute\n" || !strings.HasPrefix(w.Header().Get("RateLimit"), `"minute";r=0;`) {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	if _, err := gate.HTTP(gate.Options[*gate.Exchange]{}); err == nil {
		t.Error("a gate without a limiter is made")
	}
}

// A queue holds requests back, until their context ends.
func TestHTTP_Queue_HoldsBack(t *testing.T) {
	limiter := queue(t, time.Hour, 1)
	protected := must.Get(gate.HTTP(gate.Options[*gate.Exchange]{Limiter: limiter}))(t)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, status := range []int{200, 503, 503} { // the place that a request leaves is free again
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		w := httptest.NewRecorder()
		protected.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		cancel()
		if w.Code != status || status == 503 && !strings.Contains(w.Body.String(), `/docs/problems.md#busy"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// One caller has one partition key at all gates.
func TestHTTP_TwoGates_OnePartition(t *testing.T) {
	keys := map[string]bool{}
	for range 2 {
		o := gate.Options[*gate.Exchange]{Limiter: apitest.Limiter(throttletest.Policy(t, "minute=1/60s"), nil)}
		keys[partitionOf(t, onHTTP(t, o, func(http.ResponseWriter, *http.Request) {})().Header())] = true
	}
	if len(keys) != 1 {
		t.Errorf("%d partitions of one caller", len(keys))
	}
}
