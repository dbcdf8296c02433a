package gate_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func TestHTTP_SecondRequest_Is429(t *testing.T) {
	protect := gate.HTTP(apitest.Limiter(throttletest.Policy(t, "minute=1/60s"), func() int64 { return noon }), func(r *http.Request) string { return r.Header.Get("X-User") })
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

func TestHTTP_LimiterFails_Is503(t *testing.T) {
	limiter := &throttletest.Faulty{Historian: apitest.Limiter(throttletest.Policy(t, "minute=1/60s"), nil)}
	limiter.Fail("take")
	handler := gate.HTTP(limiter, nil)(http.NotFoundHandler())
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
