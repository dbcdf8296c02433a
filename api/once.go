package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
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

// An attempt is a send with an Idempotency-Key that is being done.
type attempt struct {
	requestID string

	lease idempotency.Lease // of the answer
	mark  idempotency.Lease // of the mark; none until the mail is handed over
	stop  time.Time         // the lease may end soon after: nothing is begun any more

	theirs bool // the mark of another attempt was there

	reservation throttle.ID // begins as all of the key do, on all servers

	alone bool // another server may have done it that could not be asked
	apart bool // charged so that nobody can take it up
	// own makes the charge this server's own to tell of, where the others cannot be asked; nil
	// for one that another has made.
	own         func(context.Context) (alone bool, err error)
	mayHaveLeft bool                // so the answer is kept, whatever it is
	answer      *idempotency.Answer // to be kept; none as long as there is no answer, or none to keep
	refunding   bool                // the key is free when the refund is done, which has the attempt from then on
}

const (
	// attemptRest is how long after SendDeadline an attempt may still give back what it
	// charged. With one more try it ends within what a lease has.
	attemptRest = 14 * time.Second
	// inFlightRetry is what a caller is told to wait for the first request, at most.
	inFlightRetry = 1000
	// keyed is how many characters of a reservation follow from the key. The others are the
	// attempt's own: what one gives back, and is heard of when another has sent the mail, is
	// not the place of that mail. Both are long enough for the few sends of one mailbox.
	keyed = 5
	// sendRoute is what a key is sent to, as fingerprints and those who count sends know it.
	sendRoute = "POST /send-code"
	// handed sets the marks' callers apart: no name of a key has a blank.
	handed = "handed over by "
)

// sendCode is the whole work of POST /send-code. What cannot be read or will not do is
// no use of a key: the caller mends it and may use the key for that.
func (s *Server) sendCode(ctx context.Context, c *call, in *incoming, out *answer) error {
	key, given, err := s.repeatKey(in)
	if err != nil {
		return err
	}
	q, err := s.readSend(in)
	if !given {
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

// repeatKey is the Idempotency-Key of a request whose answer is kept.
func (s *Server) repeatKey(in *incoming) (key string, given bool, err error) {
	key, given, err = readKey(in)
	if given && s.with.Repeats.isZero() {
		return "", true, &problem{kind: badRequest, detail: "This server keeps no answers, so it takes no Idempotency-Key."}
	}
	return key, given, err
}

// readKey is the request's Idempotency-Key.
func readKey(in *incoming) (key string, given bool, err error) {
	fields := in.header.PeekAll("Idempotency-Key")
	if len(fields) == 0 {
		return "", false, nil
	}
	key, err = idempotency.ParseKey(string(bytes.Join(fields, []byte(", "))))
	if err != nil {
		return "", true, &problem{kind: badRequest, detail: "The Idempotency-Key must be 1 to 255 visible ASCII characters, in double quotes."}
	}
	return key, true, nil
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

// newAttempt is the attempt that an outcome begins, which was asked for at this moment: its
// lease began no earlier.
func (s *Server) newAttempt(c *call, o idempotency.Outcome, began time.Time) *attempt {
	return &attempt{requestID: c.requestID, lease: o.Lease, stop: began.Add(s.with.SendDeadline + attemptRest), alone: o.Degraded}
}

func inFlight(o idempotency.Outcome) error {
	return &problem{kind: keyInFlight, retryAfter: min(o.RetryAfter, inFlightRetry)}
}

// attempt does the send and keeps its answer, or frees the key. What may have left is
// answered alike for ever, a 504 too: done again, it could be a second mail. All else
// that is not a yes was about the moment, and was charged to nobody.
func (s *Server) attempt(ctx context.Context, c *call, q sendRequest, out *answer) error {
	c.attempt.reservation = s.reservation(c.attempt.lease)
	return s.conclude(ctx, c, out, s.answerSend(ctx, c, q, out))
}

// conclude ends an attempt. An answer goes through the refunds, which try again what fails.
func (s *Server) conclude(ctx context.Context, c *call, out *answer, err error) error {
	a := c.attempt
	if err != nil {
		out.refuse(problemOf(err))
	}
	switch {
	case a.refunding:
		return err
	case a.mayHaveLeft:
		answer := out.kept()
		a.answer = &answer
	}
	s.refunds.now(ctx, refund{key: a})
	return err
}

func (s *Server) replayed(c *call, out *answer, first idempotency.Answer) {
	s.metrics.sent(sendReplayed)
	c.replayed, c.problem = true, nameIn(first.Body)
	out.replay(first)
}

// errUnseen is the end of an attempt whose charge another has made, or whose mail.
var errUnseen = fmt.Errorf("%w: the other servers cannot be asked whether the mail left", idempotency.ErrUnavailable)

// errHanded is why an attempt sends no mail: nobody knows whether it would be the second.
var errHanded = errors.New("another attempt has handed the mail over")

var errLeaseLost = errors.New("the lease had ended")

// end keeps the answer, or frees the key of an attempt that has none to keep.
func (r Repeats) end(ctx context.Context, a *attempt) error {
	if a.answer == nil {
		return r.free(ctx, a)
	}
	kept, err := r.Answers.Finish(ctx, a.lease, *a.answer)
	if err == nil && !kept {
		err = errLeaseLost
	}
	if err != nil {
		return fmt.Errorf("keeping an answer: %w", err)
	}
	return nil
}

// free lets the key be used again. The mark goes first: a key without it may be sent.
func (r Repeats) free(ctx context.Context, a *attempt) error {
	if !a.mark.Token.IsZero() {
		if _, err := r.HandedOver.Abandon(ctx, a.mark); err != nil {
			return fmt.Errorf("taking back a mark: %w", err)
		}
		a.mark = idempotency.Lease{}
	}
	if _, err := r.Answers.Abandon(ctx, a.lease); err != nil {
		return fmt.Errorf("freeing a key: %w", err)
	}
	return nil
}

// late reports whether the lease may have ended, and somebody else may have begun.
func (a *attempt) late(now time.Time) bool { return now.After(a.stop) }

// stays is what becomes of a key that is not freed, or whose answer is not kept.
func (a *attempt) stays() string {
	marked := a.theirs || !a.mark.Token.IsZero()
	switch {
	case a.answer != nil && marked:
		return "an answer could not be kept: its key is in flight until the lease ends, and whoever uses it then is told that the mail may have left (504)"
	case a.answer != nil: // of a recipient who was refused before the mail was handed over
		return "an answer could not be kept: its key is in flight until the lease ends, and for whoever uses it then the mail is tried anew"
	case marked:
		return "a key could not be freed, and whoever uses it when its lease has ended is told that the mail may have left (504)"
	}
	return "a key could not be freed, and is in flight until its lease ends"
}

// handOver puts the mark that the mail may leave from now on. One that is there already
// was put by another attempt, which has not come to its answer.
func (s *Server) handOver(ctx context.Context, a *attempt) error {
	if a == nil || !a.mark.Token.IsZero() {
		return nil
	}
	name := idempotency.Name{Caller: handed + a.lease.Name.Caller, Key: a.lease.Name.Key}
	outcome, err := s.with.Repeats.HandedOver.Begin(ctx, name, a.lease.Body)
	if err != nil {
		a.mark = outcome.Lease // to be taken back: it may have been put unheard
		return notSent{err}
	}
	if outcome.State != idempotency.Started {
		return a.handed()
	}
	a.mark = outcome.Lease
	switch {
	case !outcome.Degraded || a.apart:
		return nil
	case a.own == nil:
		return notSent{errUnseen}
	}
	return s.show(ctx, a)
}

// handed is the end of an attempt that has found the mark of another.
func (a *attempt) handed() error {
	a.theirs, a.mayHaveLeft = true, true
	return &problem{kind: deliveryUnknown, cause: errHanded}
}

// marking is how often a mark is put that the others do not see, before there is no mail.
const marking = 3

// show has the others see a mark that they did not. Who does not see it may take up the
// charge, and send a mail of its own on that. So it is put once more, for them all; and if
// they still cannot be told, this server owns the charge as it does all that it made alone,
// and tells of both when they can be. If they are there for the charge and not for the mark,
// all is tried anew.
//
// So a retry elsewhere is a second mail of the key only where this server is killed, or sleeps
// through its lease, before it could tell of the mark. Both mails are counted when it wakes, or
// comes back with its disk; one is not where it does not come back, or was killed in the
// milliseconds between telling of the charge and of the mark.
func (s *Server) show(ctx context.Context, a *attempt) error {
	for range marking {
		outcome, err := s.with.Repeats.HandedOver.BeginAs(ctx, a.mark)
		switch {
		case err != nil:
			return notSent{err}
		case outcome.State != idempotency.Started:
			return a.handed()
		case !outcome.Degraded:
			return nil
		}
		if alone, err := a.own(ctx); err != nil {
			return notSent{err}
		} else if alone {
			return nil
		}
	}
	return notSent{errUnseen}
}

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
