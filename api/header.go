package api

import (
	"strconv"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/valyala/fasthttp"
)

// Header names as they go out.
var (
	headerRequestID  = []byte("X-Request-Id")
	headerRetryAfter = []byte("Retry-After")
	headerCache      = []byte("Cache-Control")
	headerNosniff    = []byte("X-Content-Type-Options")
	headerAllow      = []byte("Allow")
	headerCSP        = []byte("Content-Security-Policy")
	headerChallenge  = []byte("WWW-Authenticate")
	valueNosniff     = []byte("nosniff")
	valueNoStore     = []byte("no-store")
	valueChallenge   = []byte("Bearer")
)

// setHeaders writes all headers of the answer. Nothing this server says may be kept by
// a cache unless the answer says so: it is true for a moment, or for one caller.
func (s *Server) setHeaders(h *fasthttp.ResponseHeader, w *work) {
	out := &w.out
	h.SetContentType(out.contentType)
	h.SetCanonical(headerNosniff, valueNosniff)
	if out.cache != "" {
		h.SetCanonical(headerCache, []byte(out.cache))
	} else {
		h.SetCanonical(headerCache, valueNoStore)
	}
	w.line = append(w.line[:0], w.call.requestID...)
	h.SetCanonical(headerRequestID, w.line)
	w.line = wire.SetRateLimit(h, w.line, out.limits)
	if out.retryAfter > 0 {
		w.line = strconv.AppendInt(w.line[:0], wire.Seconds(out.retryAfter), 10)
		h.SetCanonical(headerRetryAfter, w.line)
	}
	if out.allow != "" {
		h.SetCanonical(headerAllow, []byte(out.allow))
	}
	if out.csp != "" {
		h.SetCanonical(headerCSP, []byte(out.csp))
	}
	for _, field := range out.more {
		h.SetCanonical([]byte(field.Name), []byte(field.Value))
	}
	if w.route.anywhere {
		setCrossOrigin(h, w.route)
	}
	if out.status == fasthttp.StatusUnauthorized {
		h.SetCanonical(headerChallenge, valueChallenge)
	}
}
