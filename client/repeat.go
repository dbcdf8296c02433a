package client

import (
	"errors"
	"net/http"
	"time"
)

// again reports whether a question that ended so is worth asking again, and how long the
// server wants to be left alone before.
func (q question) again(err error) (notBefore time.Duration, again bool) {
	if silence, ok := errors.AsType[*NoAnswer](err); ok {
		return 0, q.harmless || silence.NotAsked
	}
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return 0, false
	}
	switch p.Status {
	case http.StatusConflict:
		return p.RetryAfter, p.Kind == KeyInFlight
	case http.StatusServiceUnavailable:
		// Mailgate's own says that nothing was counted, unless its history failed; a proxy's
		// says nothing.
		return p.RetryAfter, q.harmless || p.Kind != "" && !(q.counts && p.Kind == StoreUnavailable)
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return p.RetryAfter, q.harmless && p.Kind == ""
	}
	return 0, false
}

// firstPause is doubled from attempt to attempt.
const firstPause = 200 * time.Millisecond

// pauseAfter is how long to pause after so many attempts: half of it is chance, so that
// those who failed together do not come back together. What the server asks for comes on
// top, since it tells everybody the same.
func (c *Client) pauseAfter(attempts int, notBefore time.Duration) time.Duration {
	d := c.with.MaxPause
	if shift := attempts - 1; shift < 16 {
		d = min(d, firstPause<<shift)
	}
	return notBefore + d/2 + time.Duration(c.chance()*float64(d/2))
}
