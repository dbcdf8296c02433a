package relay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
	"github.com/mailgate/mailgate/mailer/address"
)

// relay is one relay: how to reach it, its connections, and whether it is worth asking.
type relay struct {
	name    string
	dialer  *dialer
	pool    *pool
	circuit *breaker.Circuit
	log     *slog.Logger
	tried   func(relay, result string, took time.Duration)
	life    context.Context // ends when everything must

	mu   sync.Mutex
	live map[*conn]struct{} // every open connection, to be cut at once
}

func newRelay(life context.Context, url URL, o Options) *relay {
	r := &relay{
		name:   url.Addr(),
		dialer: newDialer(life, url, o),
		log:    o.Logger.With("relay", url.Addr()),
		tried:  o.Hooks.Tried,
		life:   life,
		live:   map[*conn]struct{}{},
	}
	r.pool = &pool{
		max: o.MaxConns, perDomain: o.MaxConnsPerDomain, maxWaiting: o.MaxWaiting,
		idleTimeout: o.IdleTimeout, cooldown: o.Breaker.Cooldown, now: o.Now,
		gone: life.Done(), quit: r.quit, inUse: map[string]int{},
	}
	r.circuit = o.Breaker.circuit(o.Now, func(open bool) {
		if open {
			r.log.Warn("relay circuit breaker opened")
		} else {
			r.log.Info("relay circuit breaker closed")
		}
		o.Hooks.Circuit(r.name, open)
	})
	return r
}

// try is one mail on one relay, from taking a connection to the relay's last answer.
type try struct {
	relay *relay
	conn  *conn
	pass  breaker.Pass
	mail  envelope
	began time.Time
}

// envelope is the sender and the recipient. The recipient's domain has a share of the
// connections.
type envelope struct {
	from, to address.Address
	domain   string
}

var (
	errOpen    = errors.New("its circuit breaker is open")
	errCrowded = errors.New("it takes no more connections beside those that it has")
)

// begin takes one mail up to the relay's 354. It waits for a connection until line at most.
// A mail for which the relay takes no further connection goes back to the queue.
func (r *relay) begin(b budget, line time.Time, mail envelope) (*try, *Error) {
	began := time.Now()
	for {
		t, failure := r.attempt(b, line, mail)
		if failure == nil {
			t.began = began
			return t, nil
		}
		if !errors.Is(failure, errCrowded) || b.tooLate() {
			if !errors.Is(failure, errOpen) {
				r.tried(r.name, failure.Outcome.String(), time.Since(began))
			}
			return nil, failure
		}
	}
}

func (r *relay) attempt(b budget, line time.Time, mail envelope) (*try, *Error) {
	if rest := r.circuit.Rest(); rest > 0 {
		return nil, r.resting(rest)
	}
	c, failure := r.pool.take(b.ctx, line, mail.domain)
	if failure != nil {
		if failure.Outcome != Busy {
			failure.Relay = r.name
		}
		return nil, failure
	}
	// Asked again: the circuit may have opened while this mail waited.
	pass := r.circuit.Ask()
	if !pass.OK {
		r.pool.release(c, mail.domain)
		return nil, r.resting(pass.Wait)
	}
	t := &try{relay: r, conn: c, pass: pass, mail: mail}
	if failure = t.ready(b); failure != nil {
		t.end(b, failure)
		return nil, failure
	}
	return t, nil
}

func (r *relay) resting(ms int64) *Error {
	return &Error{Outcome: Unavailable, Relay: r.name, RetryAfter: time.Duration(ms) * time.Millisecond, Err: errOpen}
}

// ready gets to the 354 over the kept connection, or a new one. A kept one that turns out
// dead or spent is replaced, once, unless it is too late for that.
func (t *try) ready(b budget) (failure *Error) {
	if t.conn != nil {
		failure = t.conn.begin(b, t.mail)
		if failure == nil || !t.conn.stale(failure) || b.tooLate() {
			return failure
		}
		t.relay.forget(t.conn)
		t.conn.close()
	}
	if t.conn, failure = t.relay.dial(b); failure != nil {
		return failure
	}
	return t.conn.begin(b, t.mail)
}

// end settles what came of the try and gives the connection back. The circuit is told
// first: the next in the queue must find it as this try leaves it.
func (t *try) end(b budget, failure *Error) {
	r := t.relay
	if failure != nil {
		if oneTooMany(failure) && r.pool.crowded() {
			failure.Err = errCrowded
			if t.conn != nil {
				t.conn.broken = true
			}
		}
		failure.Deferred = failure.Outcome == Unavailable && (t.conn.blurred(failure) ||
			failure.Step == StepRCPT && (failure.Reply == nil || failure.Reply.about() != aboutCommand))
	}
	health := judge(b.ctx, failure)
	if health == breaker.Failed && t.conn.blurred(failure) {
		r.dialer.apart.Store(true) // the next silence will tell
		health = breaker.NotJudged
	}
	r.circuit.Settle(t.pass, health)
	if t.conn != nil && t.conn.broken {
		r.forget(t.conn)
	}
	r.pool.release(t.conn, t.mail.domain)
	if failure != nil && !errors.Is(failure, errCrowded) { // in the queue it may yet be accepted
		r.report(t.mail, failure)
	}
}

// oneTooMany reports whether a new connection was refused for now, or a mail because others
// are being sent over other connections.
func oneTooMany(failure *Error) bool {
	if failure.Reply == nil || failure.Reply.Code/100 != 4 {
		return false
	}
	switch failure.Step {
	case StepBanner, StepEHLO, StepAUTH:
		return true
	}
	return failure.Reply.about() == aboutLoad
}

// judge is what a try tells about the relay's health, by the step at which it failed. What
// a recipient can bring about is held against no relay: a failure at RCPT means that MAIL
// was answered well. Nor is a send that ran out of its own time, or one connection more
// than the relay takes. Silence at DATA or after the final dot is: that a recipient's server
// is behind it cannot be told from a relay that hangs.
func judge(ctx context.Context, failure *Error) breaker.Outcome {
	switch {
	case failure == nil, failure.Outcome == Rejected:
		return breaker.Answered
	case ctx.Err() == context.Canceled, errors.Is(failure, ErrClosed), errors.Is(failure, errOutOfTime), errors.Is(failure, errCrowded):
		return breaker.NotJudged
	case errors.Is(failure, errTooBig):
		return breaker.Answered
	case failure.Step == StepRCPT:
		return breaker.Reached
	case failure.Outcome == Unknown, failure.Reply == nil, failure.Reply.Code == 421:
		return breaker.Failed
	case failure.Step == StepDATA, failure.Step == StepFinalDot:
		return breaker.Answered // 4xx, or a matter of policy, to one mail
	}
	return breaker.Failed
}

// report logs a try that failed. A deferral goes by the name that it has in the metrics.
func (r *relay) report(mail envelope, failure *Error) {
	outcome, level := failure.Outcome.String(), slog.LevelWarn
	switch {
	case failure.Deferred:
		outcome = "deferred"
	case failure.Outcome == Rejected:
		level = slog.LevelInfo
	}
	attributes := []slog.Attr{slog.String("mailbox", mail.to.Hash()), slog.String("outcome", outcome), slog.String("step", string(failure.Step))}
	if failure.Reply != nil {
		attributes = append(attributes, slog.Any("reply", *failure.Reply))
	}
	if failure.Err != nil {
		attributes = append(attributes, slog.String("error", failure.Err.Error()))
	}
	r.log.LogAttrs(context.Background(), level, "mail not accepted", attributes...)
}

// dial makes a connection that cut can end.
func (r *relay) dial(b budget) (*conn, *Error) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	b.ctx = ctx
	c, failure := r.dialer.dial(b)
	if failure != nil {
		return nil, failure
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil { // it opened just too late to be cut
		c.close()
	}
	r.live[c] = struct{}{}
	return c, nil
}

func (r *relay) forget(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, c)
}

// quit ends a connection that is still good. Nothing depends on it, so a second is enough.
func (r *relay) quit(c *conn) {
	c.quit(budget{ctx: context.Background(), until: time.Now().Add(time.Second)})
	r.forget(c)
}

// cut ends every connection at once.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.live {
		c.close()
	}
}
