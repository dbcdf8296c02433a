package gate

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/mailgate/mailgate/internal/report"
)

// HTTP makes the middleware for net/http. Handlers that use it are counted together. The status that
// Options.Release sees is that of the header, which a handler may send before it fails. An error that
// Refuse or Failed returns is answered with status 500.
func HTTP(o Options[*Exchange]) (func(http.Handler) http.Handler, error) {
	g, err := newGate(o)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if g.handle(&Exchange{w, r, next}) != nil {
				http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			}
		})
	}, nil
}

// Exchange is a request in net/http, and what to answer it with.
type Exchange struct {
	W       http.ResponseWriter
	R       *http.Request
	handler http.Handler
}

// Next admits the request: it calls the handler.
func (x *Exchange) Next() error {
	x.handler.ServeHTTP(x.W, x.R)
	return nil
}

func (x *Exchange) context() context.Context { return x.R.Context() }

func (x *Exchange) peer() string {
	if peer, err := netip.ParseAddrPort(x.R.RemoteAddr); err == nil {
		return KeyOfPeer(peer.Addr())
	}
	return peerKey(x.R.RemoteAddr)
}

func (x *Exchange) set(name, value string) { x.W.Header().Set(name, value) }

func (x *Exchange) answer(status int, body []byte) error {
	x.W.WriteHeader(status)
	_, _ = x.W.Write(body) // fails only if the client has gone
	return nil
}

func (x *Exchange) next(ends func(status int, own bool)) error {
	w := &watched{ResponseWriter: x.W, ends: ends}
	status := http.StatusInternalServerError // of a panic
	defer func() { w.end(status) }()
	x.handler.ServeHTTP(w, x.R)
	status = http.StatusOK
	return nil
}

// watched calls ends before the header of the answer is sent.
type watched struct {
	http.ResponseWriter
	ends  func(status int, own bool)
	ended bool
}

func (w *watched) end(status int) {
	if w.ended {
		return
	}
	w.ended = true
	fields := w.Header()
	w.ends(status, fields.Get(report.RateLimit)+fields.Get(report.RateLimitPolicy) != "")
}

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols { // others come before the answer
		w.end(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watched) Write(text []byte) (int, error) {
	w.end(http.StatusOK)
	return w.ResponseWriter.Write(text)
}

// Flush implements http.Flusher.
func (w *watched) Flush() {
	w.end(http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).Flush() // some writers cannot
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
