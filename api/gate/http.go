package gate

import (
	"net/http"
	"net/netip"

	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle"
)

// HTTP returns the middleware for net/http. It counts requests by key, and where key is nil or
// returns nothing by the address of the connection; its refusals are those of New. It does not
// hold requests back, so the limiter must not use a LeakyBucket.
func HTTP(limiter throttle.Limiter, key func(*http.Request) string) func(http.Handler) http.Handler {
	partitions := newPartitions()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			counted := keyOf(r, key)
			v, err := limiter.Take(r.Context(), counted, throttle.NewID())
			if err != nil {
				refuse(w, http.StatusServiceUnavailable, retry, unavailable(err))
				return
			}
			partitions.setRateLimit(w.Header().Set, counted, &v)
			if !v.Allowed {
				told := report.OfOne("requests", "these requests", "", &v)
				refuse(w, http.StatusTooManyRequests, told.RetryAfter(), told.Refusal(nil))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func keyOf(r *http.Request, key func(*http.Request) string) string {
	if key != nil {
		if name := key(r); name != "" {
			return KeyOf(name)
		}
	}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return KeyOfPeer(peer.Addr())
	}
	return peerKey(r.RemoteAddr)
}

func refuse(w http.ResponseWriter, status int, wait int64, body []byte) {
	setProblem(w.Header().Set, wait)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
