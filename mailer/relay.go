package mailer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
)

// relay is one relay: how to reach it, what is connected to it, and whether
// it is worth asking.
type relay struct {
	name    string
	opener  *opener
	conns   *connections
	circuit *breaker.Circuit
	log     *slog.Logger
	most    int // mails per connection
	now     func() int64
	tried   func(relay, result string, took time.Duration)

	leaving sync.WaitGroup  // connections being taken leave of
	life    context.Context // ends when everything must

	mu   sync.Mutex
	live map[*smtpConn]struct{} // every open connection, for the day they must end at once
}

func newRelay(life context.Context, url RelayURL, o Options) *relay {
	r := &relay{
		name:   url.Addr(),
		opener: newOpener(url, o),
		log:    o.Logger.With("relay", url.Addr()),
		most:   o.MaxMailsPerConn,
		now:    o.Now,
		tried:  o.Hooks.Tried,
		life:   life,
		live:   map[*smtpConn]struct{}{},
	}
	r.conns = &connections{
		max:           o.MaxConns,
		mostPerDomain: o.MaxConnsPerDomain,
		mostStrangers: max(1, o.MaxConns-o.MaxConns/4),
		idleMS:        o.IdleTimeout.Milliseconds(),
		longMS:        max(1, (o.RCPTTimeout / hurry).Milliseconds()),
		fullMS:        max(1, o.Breaker.Cooldown.Milliseconds()),
		now:           o.Now,
		gone:          life.Done(),
		retire:        r.retire,
		line:          newLine(o.MaxWaiting, max(1, o.MaxWaiting/2)),
		inUse:         map[string]int{},
		known:         newAcquaintances(mostKnown),
	}
	r.circuit = o.Breaker.circuit(o.Now, func(open bool) {
		if open {
			r.log.Warn("relay keeps failing and is left alone for a while")
		} else {
			r.log.Info("relay is back")
		}
		o.Hooks.Circuit(r.name, open)
	})
	return r
}

// send tries to hand one mail to this relay. The error is a *SendError or
// matches ErrBusy. A mail for which the relay had no connection beside those that
// it has taken goes back to the line, to wait for one of them.
func (r *relay) send(p patience, l *letter) (*Reply, error) {
	began := time.Now()
	reply, err := r.attempt(p, l)
	for errors.Is(err, errCrowded) && !p.tooLate() {
		reply, err = r.attempt(p, l)
	}
	if failure, ok := errors.AsType[*SendError](err); ok && errors.Is(err, errCrowded) {
		r.report(l, failure)
	}
	if !errors.Is(err, errResting) {
		r.tried(r.name, resultOf(err), time.Since(began))
	}
	return reply, err
}

func resultOf(err error) string {
	var failure *SendError
	switch {
	case err == nil:
		return "sent"
	case errors.As(err, &failure):
		return failure.Outcome.String()
	}
	return "busy"
}

func (r *relay) attempt(p patience, l *letter) (*Reply, error) {
	if rest := r.circuit.Rest(); rest > 0 {
		return nil, r.resting(rest)
	}
	c, share, err := r.conns.take(p, l.claim)
	if err != nil {
		if errors.Is(err, ErrBusy) {
			return nil, err
		}
		return nil, &SendError{Outcome: Unavailable, Relay: r.name, Step: StepConnect, Err: err}
	}
	// Asked again: the relay may have been given up while this mail waited.
	pass := r.circuit.Ask()
	if !pass.OK {
		r.conns.pass(share, c)
		return nil, r.resting(pass.Wait)
	}
	c, reply, failure := r.deliver(p, c, l)
	if oneTooMany(c, failure) && r.conns.crowded() {
		failure.Err, c.broken = errCrowded, true
	}
	r.circuit.Settle(pass, r.judge(p.ctx, c, failure))
	if failure != nil {
		failure.Deferred = failure.Outcome == Unavailable && atRecipient(c, failure)
	}
	// Not before: whoever is called up next must find the breaker as this try
	// leaves it.
	r.learn(l.domain, c)
	r.conns.release(share)
	r.giveBack(c)
	if failure == nil {
		return reply, nil
	}
	if !errors.Is(failure, errCrowded) { // back in the line it may yet be accepted
		r.report(l, failure)
	}
	return nil, failure
}

var (
	errResting = errors.New("it keeps failing and is left alone for a while")
	errCrowded = errors.New("it takes no more connections beside those that it has")
)

func (r *relay) resting(ms int64) *SendError {
	return &SendError{
		Outcome:    Unavailable,
		Relay:      r.name,
		RetryAfter: time.Duration(ms) * time.Millisecond,
		Err:        errResting,
	}
}

// deliver uses the kept connection, or dials if there is none. A kept one that
// turns out dead or spent before the mail was handed over is replaced, once,
// unless it is too late for that. It returns the connection that was used last, if
// there is one, for giveBack.
func (r *relay) deliver(p patience, c *smtpConn, l *letter) (*smtpConn, *Reply, *SendError) {
	if c != nil {
		reply, failure := c.deliver(p, l)
		if failure == nil || !diedEarly(c, failure) || p.tooLate() {
			return c, reply, failure
		}
		r.forget(c)
		c.close()
	}
	c, failure := r.open(p)
	if failure != nil {
		return nil, nil, failure
	}
	reply, failure := c.deliver(p, l)
	return c, reply, failure
}

// report logs what came of a try. A deferral goes by the name that it has in the figures.
func (r *relay) report(l *letter, failure *SendError) {
	outcome := failure.Outcome.String()
	if failure.Deferred {
		outcome = "deferred"
	}
	level := slog.LevelWarn
	if failure.Outcome == Rejected {
		level = slog.LevelInfo
	}
	attributes := []slog.Attr{
		slog.String("message_id", l.id),
		slog.String("outcome", outcome),
		slog.String("step", string(failure.Step)),
	}
	if failure.Reply != nil {
		attributes = append(attributes, slog.Any("reply", *failure.Reply))
	}
	if failure.Err != nil {
		attributes = append(attributes, slog.String("error", failure.Err.Error()))
	}
	r.log.LogAttrs(context.Background(), level, "mail not accepted", attributes...)
}

// open makes a connection and enters it in the list of the living.
func (r *relay) open(p patience) (*smtpConn, *SendError) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	p.ctx = ctx
	c, failure := r.opener.open(p)
	if failure != nil {
		if atTheDoor(failure) && r.conns.crowded() {
			failure.Err = errCrowded
		}
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

func (r *relay) forget(c *smtpConn) {
	r.mu.Lock()
	delete(r.live, c)
	r.mu.Unlock()
}

// learn notes what the last mail on a connection told of its recipient's domain.
func (r *relay) learn(domain string, c *smtpConn) {
	if c != nil && c.recipient != notAsked {
		r.conns.learn(domain, c.recipient == prompt)
	}
}

// giveBack keeps a connection that is still good. Without one it gives back the
// place alone.
func (r *relay) giveBack(c *smtpConn) {
	switch {
	case c == nil:
		r.conns.drop()
	case c.broken:
		r.forget(c)
		c.close()
		r.conns.drop()
	case c.mails >= r.most:
		r.retire(c)
	default:
		r.conns.put(c)
	}
}

// farewell bounds QUIT: nothing depends on it.
const farewell = time.Second

// retire takes leave of a connection and then gives its place back, without
// keeping the mail that was its last waiting.
func (r *relay) retire(c *smtpConn) {
	r.leaving.Go(func() {
		c.quit(patience{ctx: context.Background(), until: time.Now().Add(farewell)})
		r.forget(c)
		r.conns.drop()
	})
}

// cut ends every connection at once, whatever it is doing.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.live {
		c.close()
	}
}
