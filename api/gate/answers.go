package gate

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
)

func (g *gate[C]) refuse(c C, v throttle.Verdict) error {
	rep := report.OfOne(g.Name, "these requests", "", &v)
	return problem(exchangeOf(c), http.StatusTooManyRequests, rep.RetryAfter(), rep.Refusal(nil))
}

// retry is after how many milliseconds a request that could not be counted can be repeated.
const retry = 1000

// Failed answers with a problem of status 503 that does not show the error. It is the default of
// Options.Failed; one that logs the error can return this.
func Failed[C Request](c C, err error) error {
	kind, title, detail := "store-unavailable", "Storage unavailable", "Whether this request may be let through cannot be decided now."
	if errors.Is(err, ErrQueue) {
		kind, title, detail = "busy", "Too many requests waiting", "This request has waited in a queue until its time was over."
	}
	var o wire.Object
	o.Problem(wire.Explained+kind, title, http.StatusServiceUnavailable, detail)
	return problem(exchangeOf(c), http.StatusServiceUnavailable, retry, o.End())
}

func problem(x exchange, status int, wait int64, body []byte) error {
	x.set("Cache-Control", "no-store")
	x.set("Retry-After", strconv.FormatInt(wire.Seconds(wait), 10))
	x.set("Content-Type", wire.ProblemType)
	return x.answer(status, body)
}
