package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// retry reports whether a request that ended so may be repeated, and the Retry-After.
func (r request) retry(err error) (retryAfter time.Duration, retry bool) {
	if network, ok := errors.AsType[*NetworkError](err); ok {
		return 0, !r.countsAgain || !network.sent
	}
	p, ok := errors.AsType[*APIError](err)
	if !ok {
		return 0, false
	}
	switch p.Status {
	case http.StatusConflict:
		return p.RetryAfter, p.Kind == KeyInFlight
	case http.StatusServiceUnavailable:
		// Mailgate's own 503 did nothing, unless its storage failed; a proxy's may hide anything.
		return p.RetryAfter, !r.countsAgain || p.Kind != "" && p.Kind != StoreUnavailable
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return p.RetryAfter, !r.countsAgain && p.Kind == ""
	}
	return 0, false
}

// mayHaveActed reports whether an attempt that ended so may have sent or counted something.
func (r request) mayHaveActed(err error) bool {
	if r.reads {
		return false
	}
	if network, ok := errors.AsType[*NetworkError](err); ok {
		return network.sent
	}
	p, ok := errors.AsType[*APIError](err)
	if !ok {
		return errors.Is(err, ErrUnreadable)
	}
	if p.Kind != "" && p.Status == http.StatusServiceUnavailable {
		return p.Kind == StoreUnavailable && !r.mail
	}
	return p.Kind == KeyInFlight || p.Status >= 500
}

// settles reports whether an answer tells what became of all attempts under its key. Limits
// are checked only if no attempt under the key was admitted, as far as the server can see.
func settles(err error) bool {
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return !limit.Degraded
	}
	p, ok := errors.AsType[*APIError](err)
	return ok && (p.Kind == RecipientRejected || p.Kind == DeliveryUnknown)
}

// pause returns how long to wait after an attempt. Half of the client's own share is random, so
// that clients that failed together do not return together.
func (c *Client) pause(attempt int, retryAfter time.Duration) time.Duration {
	own := min(c.MaxPause, 100*time.Millisecond<<min(attempt, 16))
	return retryAfter + own/2 + time.Duration(rand.Float64()*float64(own/2))
}

// sleep waits, or returns the context's error. It does not begin a wait that the deadline cuts.
func sleep(ctx context.Context, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return context.DeadlineExceeded
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
