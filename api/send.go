package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/network"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// A sent is the answer to a mail that a relay has taken.
type sent struct {
	charge
	to        address.Address
	messageID string
	made      issued
	expiresIn int64 // milliseconds; 0 where the caller made the code
}

// An issued is a code that was made here, which is never shown, and whom it proves; the zero
// one is none.
type issued struct {
	to   verify.Recipient
	code string
}

// send takes a place by every rule, and sends. Whatever certainly never left gives the
// places back; whatever may have left keeps them.
func (s *Server) send(ctx context.Context, c *call, q sendRequest) (sent, error) {
	c.mailbox = q.mail.To
	send := q.send(c)
	s.noteInside(ctx, c, send)
	decision, err := s.admission(ctx, c, send)
	if err != nil {
		s.metrics.sent(outcomeOf(err))
		return sent{}, err
	}
	if !decision.Allowed {
		c.id = throttle.ID{}
		s.metrics.denied(decision.Rule, decision.Verdict.Limit)
		return sent{}, denied(&charge{standing: s.counted(send, decision)})
	}
	return s.deliver(ctx, c, q, send, decision)
}

// admission asks the rules, under a reservation that is new or that of an attempt.
func (s *Server) admission(ctx context.Context, c *call, send rules.Send) (rules.Decision, error) {
	if c.attempt == nil {
		c.id = throttle.NewID()
	} else if err := s.reserve(ctx, c, send); err != nil {
		return rules.Decision{}, err
	}
	return s.take(ctx, c, send)
}

// deliver mails what the rules have admitted, when its turn has come.
func (s *Server) deliver(ctx context.Context, c *call, q sendRequest, send rules.Send, decision rules.Decision) (sent, error) {
	done := sent{charge: charge{standing: s.counted(send, decision), id: c.id}, to: q.mail.To}
	c.note(&done.standing)
	c.delay = decision.Delay
	if c.delay > 0 {
		c.decided()
	}
	err := s.turn(ctx, c.delay)
	if err == nil {
		err = s.mail(ctx, c, q, &done)
	}
	if err != nil {
		s.metrics.sent(outcomeOf(err))
		return sent{}, s.settle(ctx, c, send, &done, err)
	}
	s.metrics.sent(sendDone)
	return done, nil
}

// send is what the rules may know of it.
func (q *sendRequest) send(c *call) rules.Send {
	send := sendTo(q.mail.To)
	send.Client, send.Caller = q.client, c.caller()
	send.Template = cmp.Or(q.mail.Template, message.DefaultTemplate)
	return send
}

// noteInside says once that a rule counts by an address that no visitor on the Internet has:
// what hands a back end its requests has many visitors, who would all be one.
func (s *Server) noteInside(ctx context.Context, c *call, send rules.Send) {
	if !network.Inside(send.Client) || s.insideTold.Load() || !c.live.Rules.CountsBy(rules.ByClientIP, send) || s.insideTold.Swap(true) {
		return
	}
	s.with.Log.LogAttrs(ctx, slog.LevelWarn, "client_ip is an address inside a network: if it is that of a load balancer or a proxy, "+
		"all visitors are counted as one and will be refused together; this is said once",
		slog.String("request_id", c.requestID), slog.String("key", c.key))
}

// sendTo is a send of which nothing is known but the mailbox.
func sendTo(mailbox address.Address) rules.Send {
	return rules.Send{Mailbox: mailbox.Key(), Domain: domainOf(mailbox)}
}

// domainOf is the domain that all who share it answer for: m@a.example.com, m@b.example.com and
// as many more as anybody likes are one's.
func domainOf(mailbox address.Address) string {
	return mailbox.Domain()
}

// nobodyAsked is what callers are counted as where no key is asked for.
const nobodyAsked = "local"

func (c *call) caller() string { return cmp.Or(c.key, nobodyAsked) }

// take asks the rules. Where one of them may have recorded what is not sent, the places are
// given back as soon as the rules can be asked again.
func (s *Server) take(ctx context.Context, c *call, send rules.Send) (rules.Decision, error) {
	began := time.Now()
	decision, err := c.live.Rules.Take(ctx, send, c.id)
	s.metrics.decided(time.Since(began))
	if c.attempt != nil && c.attempt.alone {
		decision.Degraded, decision.Verdict.Degraded = true, true
	}
	if decision.Owed {
		s.refunds.later(s.sendRefund(c, send, issued{}))
	}
	for i := range decision.Shadow {
		s.shadowed(ctx, c, &decision.Shadow[i])
	}
	return decision, err
}

// shadowed makes the refusal of a rule in the shadow heard.
func (s *Server) shadowed(ctx context.Context, c *call, r *rules.Refusal) {
	attrs := []slog.Attr{slog.String("request_id", c.requestID), slog.String("mailbox", c.mailbox.Hash()), slog.String("rule", r.Rule)}
	if r.Err != nil {
		s.with.Log.LogAttrs(ctx, slog.LevelWarn, "a rule in the shadow cannot be asked", append(attrs, slog.String("cause", r.Err.Error()))...)
		return
	}
	s.metrics.shadowed(r.Rule, r.Verdict.Limit)
	s.with.Log.LogAttrs(ctx, slog.LevelInfo, "a rule in the shadow would have refused",
		append(attrs, slog.String("limit", r.Verdict.Limit), slog.Int64("wait_ms", wire.Wait(&r.Verdict)))...)
}

// mail makes the mail and hands it to a relay.
func (s *Server) mail(ctx context.Context, c *call, q sendRequest, done *sent) error {
	mail := q.mail
	mail.ID, mail.NowMS = c.id.String(), s.with.Now()
	if !q.own {
		to := codeOf(mail.To, q.purpose)
		code, err := s.code(ctx, to)
		if err != nil {
			return notSent{err}
		}
		mail.Code, done.made = code, issued{to, code}
		mail.ExpiresInMS, done.expiresIn = s.with.CodeLife, s.with.CodeLife
	}
	message, err := c.live.Composer.Compose(mail)
	if err != nil {
		return notSent{err}
	}
	done.messageID = message.ID
	if c.attempt != nil {
		c.attempt.mayHaveLeft = true
	}
	c.decided()
	began := time.Now()
	tx, err := s.with.Sender.Begin(ctx, message.From, message.To)
	if err == nil {
		defer tx.Abort() // also where what follows panics
		if held := s.handOver(ctx, c.attempt); held != nil {
			return held
		}
		_, err = tx.Commit(ctx, message.Bytes)
	}
	s.metrics.relayed(outcomeOf(err), time.Since(began))
	return err
}

// code makes a code for somebody. Where codes can be checked it can be from now on,
// before the mail leaves: who reads fast would otherwise be told that it is wrong.
func (s *Server) code(ctx context.Context, to verify.Recipient) (string, error) {
	if s.desk == nil {
		return verify.NewCode(rand.Reader)
	}
	return s.desk.Issue(ctx, to)
}

// takeBack makes a code wrong again whose mail never left.
func (s *Server) takeBack(ctx context.Context, made issued) error {
	if s.desk == nil || made.code == "" {
		return nil
	}
	return s.desk.TakeBack(ctx, made.to, made.code)
}

// notSent is an error of ours while the mail had certainly not left.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// settle gives the places back if the mail certainly never left, takes back its code with
// them, and says how the mailbox stands if it may have.
func (s *Server) settle(ctx context.Context, c *call, send rules.Send, done *sent, err error) error {
	if errors.Is(err, errHanded) {
		return s.giveWay(ctx, c, send, done, err)
	}
	p := problemOf(err)
	if neverLeft(err) {
		if deferred(err) {
			send.Client = netip.Addr{} // his place stays taken: else he could have the relay asked without end
		}
		s.refunds.now(ctx, s.sendRefund(c, send, done.made))
		c.rule, c.limit = "", ""
		return p
	}
	if p.kind != internal {
		p.charged = &done.charge
	}
	return p
}

// neverLeft reports whether an error of send is certain proof that no mail went out.
// An error nobody knows proves nothing.
func neverLeft(err error) bool {
	if send, ok := errors.AsType[*relay.Error](err); ok {
		return send.Outcome == relay.Unavailable || send.Outcome == relay.Busy
	}
	_, ours := errors.AsType[notSent](err)
	return ours || errors.Is(err, relay.ErrUnsendable)
}

// deferred reports whether it was the recipient whom the relay put off.
func deferred(err error) bool {
	send, ok := errors.AsType[*relay.Error](err)
	return ok && send.Deferred
}

// The words for the ends of a send in the metrics, beside "denied", which goes with a rule.
const (
	sendDone     = "sent"
	sendReplayed = "replayed"
	sendDeferred = "deferred"
	sendFailed   = "failed"
)

var outcomes = map[kind]string{
	recipientRejected: "rejected",
	relayUnavailable:  "unavailable",
	deliveryUnknown:   "unknown",
	busy:              "busy",
	storeUnavailable:  "store-unavailable",
	keyMismatch:       "mismatch",
	keyInFlight:       "in-flight",
}

// outcomeOf is the word for an end of a send. A deferral has one of its own, since whoever
// asks for mail to a domain that is not there must wake nobody.
func outcomeOf(err error) string {
	if err == nil {
		return sendDone
	}
	if deferred(err) {
		return sendDeferred
	}
	return cmp.Or(outcomes[problemOf(err).kind], sendFailed)
}

func writeSent(out *answer, done *sent) {
	out.json()
	out.show(&done.standing)
	b := append(out.body, `{"status":"sent","id":"`...)
	b = append(b, done.id[:]...)
	b = append(b, `","message_id":`...)
	b = wire.AppendString(b, done.messageID)
	b = append(b, `,"email":`...)
	b = wire.AppendString(b, done.to.String())
	if done.expiresIn > 0 {
		b = append(b, `,"expires_in_ms":`...)
		b = strconv.AppendInt(b, done.expiresIn, 10)
	}
	b = append(b, ',')
	b = appendStanding(b, &done.standing, out)
	out.body = append(b, '}')
}
