package oauth

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// pauseMS is how long a relay that refuses one token after the other keeps the last: it
// is most likely the account that is not allowed, and no token would help.
const pauseMS = 60 * 1000

// Tokens keeps the token of a grant, and asks for another when it is no longer good. It
// may be used from any number of goroutines.
type Tokens struct {
	grant   Grant
	timeout time.Duration
	now     func() int64
	client  *http.Client
	turn    chan struct{} // held by the one who asks the token server

	mu      sync.Mutex
	token   string
	until   int64 // from then on it is not good
	pausing int64 // until then a token that is refused is kept
	asked   int   // how often the server was asked to the end
	failure error // what came of the last time
}

// NewTokens asks nobody yet. The timeout bounds each time that the server is asked; now
// is the clock, in Unix milliseconds.
func NewTokens(grant Grant, timeout time.Duration, now func() int64) *Tokens {
	return &Tokens{grant: grant, timeout: timeout, now: now, client: newClient(timeout), turn: make(chan struct{}, 1)}
}

// Format keeps the token out of whatever prints Tokens.
func (t *Tokens) Format(state fmt.State, _ rune) {
	// A write to fmt's own buffer cannot fail.
	_, _ = fmt.Fprint(state, "tokens of ", t.Server())
}

// Server is the token server's host, and its port where one is given.
func (t *Tokens) Server() string { return t.grant.Server() }

// Token is the token that is kept, or a new one. It waits until ctx ends at most. Of
// those who wait at a time one asks the server, and the others take what comes of it, be
// it a token or a failure; if that one's own time ends, the next one asks.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	_, before, _ := t.kept()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	token, asked, failure := t.kept()
	switch {
	case token != "":
		return token, nil
	case asked != before && failure != nil:
		return "", failure
	}
	began := t.now()
	token, goodMS, err := t.ask(ctx)
	if err != nil && ctx.Err() != nil { // no fault of the server's
		return "", ctx.Err()
	}
	t.keep(token, began+goodMS, err)
	return token, err
}

// kept is the token if it is good, and how often the server was asked.
func (t *Tokens) kept() (token string, asked int, failure error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now() < t.until {
		token = t.token
	}
	return token, t.asked, t.failure
}

func (t *Tokens) keep(token string, until int64, failure error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
	t.token, t.until, t.failure = token, until, failure
}

// Refused says that the relay would not have this token. Another is asked for next time.
// If that one is refused, too, it is kept until a minute has passed.
func (t *Tokens) Refused(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token != t.token {
		return // another took its place
	}
	now := t.now()
	if rest := t.pausing - now; rest > 0 && rest <= pauseMS { // a clock that stepped back prolongs nothing
		t.until = min(t.until, t.pausing)
		return
	}
	t.until, t.pausing = now, now+pauseMS
}
