package gate

import (
	"net/http"

	"github.com/mailgate/mailgate/internal/report"
)

// HTTP makes the middleware for net/http. Handlers that use it are counted together. The status that
// Options.Release sees is that of the header, which a handler may send before it fails. An error that
// Refuse or Failed returns is answered with status 500.
func HTTP(o Options[*Exchange]) (func(http.Handler) http.Handler, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x := &Exchange{w, r, next}
			p, err := o.begin(r.Context(), x, r.RemoteAddr)
			switch {
			case err != nil:
				err = o.Failed(x, err)
			case !p.Allowed:
				p.show(w.Header().Set)
				err = o.Refuse(x, p.Verdict)
			default:
				watching := &watched{ResponseWriter: w, pass: p}
				status := http.StatusInternalServerError // of a panic
				defer func() { watching.end(status) }()
				next.ServeHTTP(watching, r)
				status = http.StatusOK
			}
			if err != nil {
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

// watched ends a pass before the header of the answer is sent.
type watched struct {
	http.ResponseWriter
	pass  *pass
	ended bool
}

func (w *watched) end(status int) {
	if w.ended {
		return
	}
	w.ended = true
	w.pass.end(status)
	if fields := w.Header(); fields.Get(report.RateLimit)+fields.Get(report.RateLimitPolicy) == "" {
		w.pass.show(fields.Set)
	}
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
func (w *watched) Flush() { _ = w.FlushError() } // some writers cannot

// FlushError is for http.ResponseController.
func (w *watched) FlushError() error {
	w.end(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
