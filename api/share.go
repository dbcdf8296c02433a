package api

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// A share bounds how many requests of one kind are under way at once.
type share struct {
	most  int64 // 0 for any number
	inUse atomic.Int64
}

// take reports whether there was room for one more request, which then has to leave.
func (s *share) take() bool {
	if n := s.inUse.Add(1); s.most > 0 && n > s.most {
		s.inUse.Add(-1)
		return false
	}
	return true
}

func (s *share) leave() { s.inUse.Add(-1) }

// maxWithoutKey is how many requests without a key are under way at once by default. A browser loads
// a page over six connections; more for each processor makes sends beside a flood slower.
func maxWithoutKey() int { return max(8, 2*runtime.GOMAXPROCS(0)) }

// A keylessShare is what all requests without a valid key have together, and the answer to those
// beyond it, made once, so that refusing costs as little as can be.
type keylessShare struct {
	share
	refusal []byte
	refused prometheus.Counter
}

const tooManyWithoutKey = "Too many requests without a valid key are under way. Nothing was done for this one."

func newKeylessShare(o Options, m *metrics) *keylessShare {
	k := &keylessShare{
		refusal: (&problem{kind: busy, detail: tooManyWithoutKey}).body(&answer{}),
		refused: m.requests.WithLabelValues("without-key", "503"),
	}
	// Where no keys are set every program of this machine is a caller, and a Fallback may hold its
	// requests for as long as it likes.
	if !o.APIKeys.IsZero() && o.Fallback == nil {
		k.most = int64(o.MaxWithoutKey)
	}
	return k
}

// sharing refuses a request without a valid key when the share is used up. A request holds its part
// until its answer is written: for a page that is most of the work.
func (s *Server) sharing(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fast *fasthttp.RequestCtx) {
		if s.showsKey(&fast.Request.Header) {
			next(fast)
			return
		}
		if !s.keyless.take() {
			s.refuseKeyless(fast)
			return
		}
		fast.Conn().(*conn).holds.Store(&s.keyless.share)
		next(fast)
	}
}

// enterKeyless has what needs no key keep to the share, whatever key is shown with it. The listener
// of operations has none.
func (s *Server) enterKeyless(r *route, on *conn) error {
	if r.keys != open || r.path == "" || on.door != s.main.door || on.holds.Load() != nil {
		return nil
	}
	if !s.keyless.take() {
		return &problem{kind: busy, retryAfter: busyRetry, detail: tooManyWithoutKey}
	}
	on.holds.Store(&s.keyless.share)
	return nil
}

// showsKey reports whether a request shows a key that opens anything.
func (s *Server) showsKey(header *fasthttp.RequestHeader) bool {
	secret, ok := bearer(header.Peek("Authorization"))
	if !ok {
		return false
	}
	_, application := s.with.APIKeys.find(secret)
	_, operator := s.with.AdminKeys.find(secret)
	return application || operator
}

// breather is how long a refused connection is not read.
const breather = 250 * time.Millisecond

// refuseKeyless answers without the log and without the route: a flood pays for neither.
func (s *Server) refuseKeyless(fast *fasthttp.RequestCtx) {
	s.keyless.refused.Inc()
	fast.Conn().(*conn).hasty = true
	response := &fast.Response
	response.SetStatusCode(fasthttp.StatusServiceUnavailable)
	response.SetBodyRaw(s.keyless.refusal)
	h := &response.Header
	h.SetContentType(wire.ProblemType)
	for name, value := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Retry-After": "1", // busyRetry in seconds
		"X-Request-Id": requestID(fast.Request.Header.Peek("X-Request-Id")),
	} {
		h.SetCanonical([]byte(name), []byte(value))
	}
	if bytes.HasPrefix(fast.Request.Header.RequestURI(), []byte("/countdown")) {
		setCrossOrigin(h, &route{})
	}
	if s.draining.Load() {
		fast.SetConnectionClose()
	}
}
