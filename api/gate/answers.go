package gate

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/wire"
)

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
	return problem(c, http.StatusServiceUnavailable, retry, o.End())
}

func problem[C Request](c C, status int, wait int64, body []byte) error {
	describe := func(set func(name, value string)) {
		set("Cache-Control", "no-store")
		set("Retry-After", strconv.FormatInt(wire.Seconds(wait), 10))
		set("Content-Type", wire.ProblemType)
	}
	switch c := any(c).(type) {
	case *fiber.Ctx:
		describe(c.Set)
		return c.Status(status).Send(body)
	case *Exchange:
		describe(c.W.Header().Set)
		c.W.WriteHeader(status)
		_, _ = c.W.Write(body) // fails only if the client has gone
	}
	return nil
}
