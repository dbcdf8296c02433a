package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
	"github.com/mailgate/mailgate/mailer/address"
)

// relay is one relay: how to reach it, its connections, and whether it is worth asking.
type relay struct {
	name    string // host:port
	url     URL
	options Options
	tls     *tls.Config
	tokens  *tokens // nil: the password, or no login
	pool    *pool
	circuit *breaker.Circuit
	probing atomic.Bool
	log     *slog.Logger
}

func newRelay(url URL, o Options) *relay {
	r := &relay{name: url.Addr(), url: url, options: o, log: o.Logger.With("relay", url.Addr()), tls: &tls.Config{
		ServerName:         url.serverName,
		RootCAs:            url.roots,
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}}
	if url.login != nil {
		if oauth := url.login().oauth; oauth != nil {
			r.tokens = newTokens(*oauth, o.limits.Command, o.limits.Now)
		}
	}
	r.pool = &pool{options: o, inUse: map[string]int{}}
	r.circuit = breaker.NewCircuit(o.limits.Breaker, o.limits.Now)
	return r
}

// turned notes that the circuit has opened or closed.
func (r *relay) turned(open bool) {
	if !open {
		r.log.Info("relay circuit breaker closed")
		return
	}
	r.log.Warn("relay circuit breaker opened")
	r.options.Metrics.Opened.WithLabelValues(r.name).Inc()
}

// usable reports whether the circuit lets an email pass.
func (r *relay) usable() bool { return r.circuit.Wait() == 0 }

func (r *relay) circuitOpen(ms int64) *Error {
	return &Error{Outcome: Unavailable, Relay: r.name, RetryAfter: time.Duration(ms) * time.Millisecond, Err: errOpen}
}

func (r *relay) tried(result string, began time.Time) {
	r.options.Metrics.Tries.WithLabelValues(r.name, result).Observe(time.Since(began).Seconds())
}

// overLimit reports whether a new connection was refused for now, or an email because others
// are being sent over other connections.
func (e *Error) overLimit() bool {
	if e.Reply == nil || e.Reply.Code/100 != 4 {
		return false
	}
	return e.Step == StepBanner || e.Step == StepEHLO || e.Step == StepAUTH || e.Reply.about() == aboutLoad
}

// health returns what an attempt tells about the relay, by the step at which it failed. What a
// recipient can cause does not count against the relay: a failure at RCPT means that it answered MAIL.
// Neither does the end of a send's own time, nor a connection beyond the relay's limit. Silence at DATA
// or after the final dot does count: a recipient's slow server looks the same as a relay that hangs.
func health(ctx context.Context, failure *Error) breaker.Outcome {
	switch {
	case failure == nil, failure.Outcome == Rejected:
		return breaker.Answered
	case ctx.Err() == context.Canceled, errors.Is(failure, errOutOfTime), errors.Is(failure, errOverLimit),
		failure.Outcome == Deferred && failure.Step != StepRCPT:
		return breaker.NotJudged
	case failure.Step == StepRCPT, errors.Is(failure, ErrTooBig), errors.Is(failure, ErrEightBit):
		return breaker.Answered
	case failure.Outcome == Unknown, failure.Reply == nil, failure.Reply.Code == 421:
		return breaker.Failed
	case failure.Step == StepDATA, failure.Step == StepFinalDot:
		return breaker.Answered // 4xx, or a policy decision about one email
	}
	return breaker.Failed
}

// report logs a failed attempt.
func (r *relay) report(to address.Address, failure *Error) {
	if !failure.To.IsZero() {
		to = failure.To
	}
	level := slog.LevelWarn
	if failure.Outcome == Rejected {
		level = slog.LevelInfo
	}
	attributes := []slog.Attr{slog.String("mailbox", to.Hash()), slog.String("outcome", string(failure.Outcome)), slog.String("step", string(failure.Step))}
	if failure.Reply != nil {
		attributes = append(attributes, slog.Any("reply", *failure.Reply))
	}
	if failure.Err != nil {
		attributes = append(attributes, slog.String("error", failure.Err.Error()))
	}
	r.log.LogAttrs(context.Background(), level, "email not accepted", attributes...)
}
