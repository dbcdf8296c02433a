package api

import (
	"net/http"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// fallback runs the handler for the paths that no route has.
func (s *Server) fallback(h http.Handler) fasthttp.RequestHandler {
	// The context that the library would hand out is not safe to wait on while the
	// server is being shut down.
	adapted := fasthttpadaptor.NewFastHTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(s.open))
	}))
	return func(fast *fasthttp.RequestCtx) {
		w := &work{began: time.Now(), route: &route{name: "fallback"}, call: call{
			requestID: requestID(fast.Request.Header.Peek("X-Request-Id")),
			client:    s.client(fast),
		}}
		p := runFallback(adapted, fast)
		if p != nil {
			fast.Response.Reset()
			w.refuse(p)
			s.reply(fast, w)
		}
		w.out.status = fast.Response.StatusCode()
		fast.Response.Header.SetCanonical([]byte("X-Request-Id"), []byte(w.call.requestID))
		if s.draining.Load() {
			fast.SetConnectionClose()
		}
		s.record(w, p)
	}
}

// runFallback runs the handler and catches what panics in it.
func runFallback(h fasthttp.RequestHandler, fast *fasthttp.RequestCtx) (p *problem) {
	defer func() {
		if value := recover(); value != nil {
			p = problemOf(panicked(value))
		}
	}()
	h(fast)
	return nil
}
