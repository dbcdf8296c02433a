package client

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options are what can be otherwise. The zero Options are right for most.
type Options struct {
	// Attempts is how often one call asks at most. 4. What meets a kept connection that
	// turns out to be closed is asked again on a new one at once, and counts as one.
	Attempts int
	// Timeout bounds each attempt, from dialling to the last byte. 20 s, which is more
	// than mailgate takes to answer.
	Timeout time.Duration
	// MaxPause is the longest Retry-After that is waited for, and the longest pause of the
	// client's own, which comes on top: so a pause is at most twice as long. 5 s.
	MaxPause time.Duration
	// Transport carries the requests, for those who need a proxy or certificates of
	// their own. It must not follow redirects. Connections of the client's own, if nil.
	Transport http.RoundTripper
	// Pause waits, or returns the context's error when that ends first; for tests with
	// a clock of their own. By the system's clock, if nil.
	Pause func(ctx context.Context, d time.Duration) error
}

func (o Options) withDefaults() Options {
	o.Attempts = cmp.Or(o.Attempts, 4)
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	o.MaxPause = cmp.Or(o.MaxPause, 5*time.Second)
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	return o
}

// newTransport has no proxy: the key is for the server alone. Idle connections are
// closed before mailgate closes them, so that no request meets a closing one.
func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: 10 * time.Second,
	}
}

// pause waits by the system's clock. What cannot end before the context does is not
// begun.
func pause(ctx context.Context, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A Client asks one mailgate with one key. Any number of goroutines may use it.
type Client struct {
	base   string
	key    string
	with   Options
	http   *http.Client
	chance func() float64 // 0 to 1
}

// New makes a Client. The base URL is where mailgate is, with the path in front of its
// routes if it has one. The key is the secret of one of its API keys, or of an admin key
// for [Client.Inspect], [Client.Reset], [Client.ResetAction] and [Client.ResetRule]; empty
// for a mailgate without keys on this machine. Nothing is asked yet. Errors show neither.
func New(baseURL, key string, options Options) (*Client, error) {
	base, err := checkBase(baseURL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("mailgate: the key has a character that no key has")
	}
	if options.Attempts < 0 || options.Timeout < 0 || options.MaxPause < 0 {
		return nil, errors.New("mailgate: an option is negative")
	}
	with := options.withDefaults()
	return &Client{
		base: base, key: key, with: with, chance: rand.Float64,
		http: &http.Client{
			Transport:     with.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

var errBase = errors.New("mailgate: the base URL must be http:// or https:// with a host, and at most a path")

// checkBase returns the URL without a slash at its end.
func checkBase(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || strings.ContainsAny(text, "?#") {
		return "", errBase
	}
	return strings.TrimRight(text, "/"), nil
}

// CloseIdleConnections closes the connections that are kept for the next request.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }
