package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// Client is a client of one mailgate server with one API key. It is safe for concurrent use;
// set its fields before the first call.
type Client struct {
	// HTTP sends the requests. Its Timeout bounds each attempt, and its CheckRedirect is not
	// used. New sets one with 20 s and no proxy.
	HTTP *http.Client
	// Attempts is how often a request is made at most; 1 means no retries. New sets 4.
	Attempts int
	// MaxPause is the longest Retry-After to wait for, and the longest pause of the client's own,
	// which is added to it. New sets 5 s.
	MaxPause time.Duration

	base, key string
}

// New returns a client of the server at the base URL, which may have a path. The key is the
// secret of an API key; it is empty for a local server without keys.
func New(baseURL, key string) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(baseURL, "?#") {
		return nil, errors.New("mailgate: the base URL must be http:// or https:// with a host and at most a path")
	}
	if !visible(key) {
		return nil, errors.New("mailgate: the key contains an invalid character")
	}
	// Idle connections close before the server closes them.
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second}
	return &Client{
		HTTP:     &http.Client{Transport: transport, Timeout: 20 * time.Second},
		Attempts: 4, MaxPause: 5 * time.Second,
		base: strings.TrimRight(baseURL, "/"), key: key,
	}, nil
}

var visible = regexp.MustCompile(`^[!-~]*$`).MatchString // ASCII

// request is one request, as often as it is made.
type request struct {
	op          string // for errors
	path        string
	body        any    // sent as JSON
	key         string // the Idempotency-Key; empty for none
	reads       bool   // it changes nothing
	countsAgain bool   // doing it twice may count, or refund, twice
	mail        bool   // a 503 of mailgate means that no email was sent
}

// do makes a request until there is an answer that ends it, and returns a 200's if it is
// complete. With an error the answer is empty.
func (c *Client) do(ctx context.Context, r request, complete func(*answer) bool) (*answer, error) {
	body, err := json.Marshal(r.body)
	if err != nil {
		return &answer{}, fmt.Errorf("mailgate: %s: %w", r.op, err)
	}
	uncertain := false
	for attempt := 1; ; attempt++ {
		a, err := c.try(ctx, r, body, complete)
		if err == nil {
			return a, nil
		}
		uncertain = uncertain || r.mayHaveActed(err)
		retryAfter, retry := r.retry(err)
		if retry && attempt < c.Attempts && retryAfter <= c.MaxPause {
			over := sleep(ctx, c.pause(attempt, retryAfter))
			if over == nil {
				continue
			}
			err = fmt.Errorf("%w, after: %w", over, err)
		}
		if uncertain && !settles(err) {
			err = &UncertainError{Key: r.key, Err: err}
		}
		return &answer{}, fmt.Errorf("mailgate: %s: %w", r.op, err)
	}
}

// maxBody is far more than any answer of mailgate.
const maxBody = 1 << 20

// try makes a request once. Anything but a complete 200 is an error.
func (c *Client) try(ctx context.Context, r request, body []byte, complete func(*answer) bool) (*answer, error) {
	// Only a connection carries a request. When a kept one breaks, net/http tries a new one, and
	// its error is of that attempt alone. A transport that traces nothing may have sent it.
	var connected, written atomic.Bool
	connected.Store(true)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { connected.Store(false) },
		GotConn:      func(httptrace.GotConnInfo) { connected.Store(true) },
		WroteHeaders: func() { written.Store(true) },
	})
	request, err := c.request(ctx, r, body)
	if err != nil {
		return nil, err
	}
	direct := *c.HTTP
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := direct.Do(request)
	if err != nil {
		return nil, newNetworkError(err, connected.Load() || written.Load())
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, newNetworkError(err, true)
	}
	a := &answer{}
	if json.Unmarshal(text, a) != nil {
		a = &answer{}
	}
	a.Replayed = response.Header.Get("Idempotent-Replayed") == "true"
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, a.problem(response)
	case !complete(a):
		return nil, ErrUnreadable
	}
	return a, nil
}

func (c *Client) request(ctx context.Context, r request, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}
	request.Header.Set("Accept", "application/json, application/problem+json")
	request.Header.Set("User-Agent", "mailgate-go")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	request.Header.Set("Content-Type", "application/json")
	if r.key != "" {
		request.Header.Set("Idempotency-Key", `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(r.key)+`"`)
	}
	return request, nil
}
