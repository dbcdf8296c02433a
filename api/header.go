package api

import (
	"cmp"
	"strconv"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/valyala/fasthttp"
)

// setHeaders writes all headers of the answer, in the spelling that they have here. A cache
// must not keep an answer unless it says so: it is true for a moment, or for one caller.
func (s *Server) setHeaders(h *fasthttp.ResponseHeader, w *work) {
	out := &w.out
	line := make([]byte, 0, 256) // the header copies it
	set := func(name, value string) {
		if value != "" {
			line = append(line[:0], value...)
			h.SetCanonical([]byte(name), line)
		}
	}
	h.SetContentType(out.contentType)
	set("X-Content-Type-Options", "nosniff")
	set("Cache-Control", cmp.Or(out.cache, "no-store"))
	set("X-Request-Id", w.call.requestID)
	set(wire.RateLimitPolicyHeader, wire.RateLimitPolicy(out.limits))
	set(wire.RateLimitHeader, wire.RateLimit(out.limits))
	if out.retryAfter > 0 {
		set("Retry-After", strconv.FormatInt(wire.Seconds(out.retryAfter), 10))
	}
	set("Allow", out.allow)
	set("Content-Security-Policy", out.csp)
	for _, field := range out.more {
		set(field.Name, field.Value)
	}
	if w.route.anywhere {
		setCrossOrigin(h, w.route)
	}
	if out.status == fasthttp.StatusUnauthorized {
		set("WWW-Authenticate", "Bearer")
	}
}
