package gate

import (
	"net/http"
	"net/netip"
	"strconv"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/throttle"
)

// HTTP is the middleware for net/http. It counts requests by key, and where key is nil or
// returns nothing by the address of the connection; its refusals are those of New. A limiter
// that queues requests is not for it: it does not hold requests back.
func HTTP(limiter throttle.Limiter, key func(*http.Request) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, err := limiter.Take(r.Context(), keyOf(r, key), throttle.NewID())
			if err != nil {
				refuse(w, http.StatusServiceUnavailable, retry, undecided())
				return
			}
			limits := wire.Limits(&v, "")
			w.Header().Set(wire.RateLimitPolicyHeader, wire.RateLimitPolicy(limits))
			w.Header().Set(wire.RateLimitHeader, wire.RateLimit(limits))
			if !v.Allowed {
				refuse(w, http.StatusTooManyRequests, wire.Wait(&v), refusal("requests", &v))
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
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", strconv.FormatInt(wire.Seconds(wait), 10))
	w.Header().Set("Content-Type", wire.ProblemType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
