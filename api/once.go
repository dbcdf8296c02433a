package api

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/idempotency"
)

// A send with an Idempotency-Key is done once, however often and whenever it is asked
// for, also by callers who lost the server in the middle:
//
//	begin        the key is in flight; whoever else brings it is told so
//	charge       under a reservation that tells the key, and the attempt
//	hand over    a mark, kept when the relay waits for the mail's text
//	finish       the answer is kept; tried until the lease may have ended
//
// The mark stays as long as the answer, so that not even an attempt that slept through
// its lease, and through another's, sends a second mail when it wakes.
//
// A server that is killed leaves the key in flight until its lease ends. Whoever then
// begins anew finds what was charged by its reservation, which is not charged twice, unless
// the mailbox's rule leaves it alone and so has no record: then what other rules have charged
// stays until it leaves their windows. He also finds the mark, if the mail may have left:
// it is not sent again, and that nobody knows is what is answered. Killed between the mark
// and the final dot, a moment for a mail of ours, it has sent nothing and is taken for one
// that has: a later mark could be missing behind a mail that did leave.

// sendRoute is what a key is sent to, as fingerprints and those who count sends know it.
const sendRoute = "POST /send-code"

// sendCode is the whole work of POST /send-code. What cannot be read or will not do is
// no use of a key: the caller mends it and may use the key for that.
func (s *Server) sendCode(ctx context.Context, c *call, in *incoming, out *answer) error {
	key, err := s.repeatKey(in)
	if err != nil {
		return err
	}
	q, err := s.readSend(in)
	if key == "" {
		if err == nil {
			err = s.answerSend(ctx, c, q, out)
		}
		return err
	}
	if err != nil && !didOnce(err) {
		return err
	}
	asked := idempotency.Lease{Name: idempotency.Name{Caller: c.caller(), Key: key}, Body: s.names.body(sendRoute, in.body)}
	return s.once(ctx, c, q, out, asked, err)
}

// didOnce reports whether a request that will not do may have done before a reload.
func didOnce(err error) bool {
	wrong := problemOf(err).fields
	return len(wrong) > 0 && !slices.ContainsFunc(wrong, func(f fieldProblem) bool { return f.field != "template" && f.field != "data" })
}

func (s *Server) answerSend(ctx context.Context, c *call, q sendRequest, out *answer) error {
	done, err := s.send(ctx, c, q)
	if err != nil {
		return err
	}
	writeSent(out, &done)
	return nil
}

// repeatKey is the Idempotency-Key of a request whose answer is kept; empty for none.
func (s *Server) repeatKey(in *incoming) (key string, err error) {
	key, err = readKey(in)
	if key != "" && s.with.Repeats.isZero() {
		return "", &problem{kind: badRequest, detail: "This server keeps no answers, so it takes no Idempotency-Key."}
	}
	return key, err
}

// readKey is the request's Idempotency-Key; empty for none.
func readKey(in *incoming) (key string, err error) {
	fields := in.header.PeekAll("Idempotency-Key")
	if len(fields) == 0 {
		return "", nil
	}
	key, err = idempotency.ParseKey(string(bytes.Join(fields, []byte(", "))))
	if err != nil {
		return "", &problem{kind: badRequest, detail: "The Idempotency-Key must be 1 to 255 visible ASCII characters, in double quotes."}
	}
	return key, nil
}

// once does the send if it is the first with its name, and else gives the first's answer.
//
// A refusal is that of a request that will not do any more, as its template is gone or
// another. It is the answer only where there is no first one, and then the key is free. Where
// nobody knows, it would be a no to what may have been done, so that is said instead.
func (s *Server) once(ctx context.Context, c *call, q sendRequest, out *answer, asked idempotency.Lease, refusal error) error {
	began := time.Now()
	outcome, err := s.with.Repeats.Answers.Begin(ctx, asked.Name, asked.Body)
	if err != nil {
		s.metrics.sent(outcomeOf(err))
		s.unbegin(ctx, outcome.Lease)
		return err
	}
	switch outcome.State {
	case idempotency.Started:
		c.attempt = s.newAttempt(c, outcome, began)
		if refusal != nil {
			return s.conclude(ctx, c, out, s.undone(ctx, c, q, refusal))
		}
		return s.attempt(ctx, c, q, out)
	case idempotency.Replay:
		s.replayed(c, out, outcome.Answer)
		return nil
	case idempotency.Mismatch:
		if refusal != nil {
			return refusal
		}
		err = &problem{kind: keyMismatch}
	default:
		err = inFlight(outcome)
	}
	s.metrics.sent(outcomeOf(err))
	return err
}

// unbegin takes back a use of a key that may have begun, of which nobody heard: who asks again
// would be told that somebody is at it. That is done within the request or not at all. While a
// history is away every request with a key has one, and the places that are to be given back
// would wait behind them.
func (s *Server) unbegin(ctx context.Context, unheard idempotency.Lease) {
	if unheard.Token.IsZero() {
		return
	}
	_, _ = s.with.Repeats.Answers.Abandon(ctx, unheard) // in flight until its lease ends, at worst
}

// undone is the refusal of what has no answer, if no mail has left: a mark says that one may
// have, whose server was killed.
func (s *Server) undone(ctx context.Context, c *call, q sendRequest, refusal error) error {
	c.mailbox = q.mail.To
	if err := s.handOver(ctx, c.attempt); err != nil {
		s.metrics.sent(outcomeOf(err))
		return s.standingOfTheirs(ctx, c, q.send(c), err)
	}
	if c.attempt.alone {
		s.metrics.sent(outcomeOf(errUnseen))
		return errUnseen
	}
	return refusal
}

// inFlightRetry is what a caller is told to wait for the first request, at most.
const inFlightRetry = 1000

func inFlight(o idempotency.Outcome) error {
	return &problem{kind: keyInFlight, retryAfter: min(o.RetryAfter, inFlightRetry)}
}

func (s *Server) replayed(c *call, out *answer, first idempotency.Answer) {
	s.metrics.sent(sendReplayed)
	c.replayed, c.problem = true, nameIn(first.Body)
	out.replay(first)
}

// errUnseen is the end of an attempt whose charge another has made, or whose mail.
var errUnseen = fmt.Errorf("%w: the other servers cannot be asked whether the mail left", idempotency.ErrUnavailable)

// kept is the answer as it is given again.
func (a *answer) kept() idempotency.Answer {
	all := idempotency.Answer{Status: a.status, Body: bytes.Clone(a.body), Header: []idempotency.Field{{Name: "Content-Type", Value: a.contentType}}}
	if len(a.limits) > 0 {
		all.Header = append(all.Header,
			idempotency.Field{Name: wire.RateLimitPolicy, Value: string(wire.AppendRateLimitPolicy(nil, a.limits))},
			idempotency.Field{Name: wire.RateLimit, Value: string(wire.AppendRateLimit(nil, a.limits))})
	}
	return all
}

// replay is the first answer once more, and says that it is.
func (a *answer) replay(first idempotency.Answer) {
	a.status, a.body = first.Status, append(a.body, first.Body...)
	for _, field := range first.Header {
		if field.Name == "Content-Type" {
			a.contentType = field.Value
			continue
		}
		a.add(field.Name, field.Value)
	}
	a.add("Idempotent-Replayed", "true")
}
