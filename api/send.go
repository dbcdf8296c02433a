package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle/rules"
)

// sendRoute is the route of sends in fingerprints.
const sendRoute = "POST /send-code"

// sendCode is POST /send-code. A request that is not valid uses no key, so that it can be
// corrected and sent under the same one. But one whose template is gone or has changed may
// have been sent before a reload, and then has that answer.
func (s *Server) sendCode(ctx context.Context, c *call, in *incoming, out *answer) error {
	key, err := s.sendKey(in)
	if err != nil {
		return err
	}
	q, refusal := s.readSend(in)
	if refusal != nil && (key == "" || !wasValid(refusal)) {
		return refusal
	}
	c.mailbox = q.mail.To
	attempt := s.delivery.Attempt(c.requestID)
	if key != "" {
		var replay *idempotency.Answer
		name := idempotency.Name{Caller: c.caller(), Key: key}
		attempt, replay, err = s.delivery.Begin(ctx, c.requestID, name, s.names.body(sendRoute, in.body))
		switch {
		case refusal != nil && isMismatch(err):
			return refusal
		case err != nil:
			return s.notSent(ctx, c, rules.Send{}, err)
		case replay != nil:
			s.replayed(c, out, *replay)
			return nil
		case refusal != nil && !attempt.MayHaveLeft():
			return s.notSent(ctx, c, rules.Send{}, attempt.Refuse(ctx, refusal))
		}
	}
	err = s.send(ctx, c, attempt, q, out)
	if attempt.Answered() {
		if err != nil {
			out.refuse(problemOf(err))
		}
		attempt.Finish(ctx, out.kept())
	}
	return err
}

// wasValid reports whether a request may have been valid before a reload.
func wasValid(refusal error) bool {
	wrong := problemOf(refusal).fields
	return len(wrong) > 0 && !slices.ContainsFunc(wrong, func(f fieldProblem) bool { return f.Field != "template" && f.Field != "data" })
}

func isMismatch(err error) bool {
	e, ok := errors.AsType[*delivery.Error](err)
	return ok && e.Kind == delivery.Mismatch
}

// sendKey is the Idempotency-Key of a send, empty if there is none.
func (s *Server) sendKey(in *incoming) (key string, err error) {
	key, err = readKey(in)
	if key != "" && s.with.Requests == nil {
		return "", &problem{kind: badRequest, detail: "This server keeps no answers, so it takes no Idempotency-Key."}
	}
	return key, err
}

// readKey is the request's Idempotency-Key, empty if there is none.
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

// send has the mail sent and writes the answer.
func (s *Server) send(ctx context.Context, c *call, attempt *delivery.Attempt, q sendRequest, out *answer) error {
	traits := sendTo(q.mail.To)
	traits.Client, traits.Caller = q.client, c.caller()
	traits.Template = cmp.Or(q.mail.Template, message.DefaultTemplate)
	s.noteInside(ctx, c, traits)
	result, err := attempt.Send(ctx, delivery.Send{
		Rules: c.live.Rules, Composer: c.live.Composer, Mail: q.mail, Purpose: q.purpose, Traits: traits, Decided: c.decided,
	})
	if err != nil {
		return s.notSent(ctx, c, traits, err)
	}
	s.noteResult(ctx, c, &result)
	done := sent{result: result, to: q.mail.To, charge: charge{quota: s.counted(q.mail.To, traits, result.Decision), id: result.ID}}
	c.note(&done.quota)
	s.metrics.sent(sendDone)
	writeSent(out, &done)
	return nil
}

// sendProblems are the answers to sends that were not accepted.
var sendProblems = map[delivery.Kind]struct {
	kind  kind
	retry int64 // milliseconds, if no better time is known
	quota bool  // the answer tells what is charged
}{
	delivery.Limited:     {kind: quotaExceeded, quota: true},
	delivery.Rejected:    {kind: recipientRejected, quota: true},
	delivery.Unavailable: {kind: relayUnavailable, retry: relayRetry},
	delivery.Deferred:    {kind: relayUnavailable, retry: relayRetry},
	delivery.Busy:        {kind: busy, retry: busyRetry},
	delivery.Storage:     {kind: storeUnavailable, retry: storeRetry},
	delivery.InFlight:    {kind: keyInFlight, retry: 1},
	delivery.Mismatch:    {kind: keyMismatch},
	delivery.Unknown:     {kind: deliveryUnknown, quota: true},
	delivery.Failed:      {kind: internal},
}

// notSent is the answer to an error of package delivery.
func (s *Server) notSent(ctx context.Context, c *call, traits rules.Send, err error) error {
	e, ok := errors.AsType[*delivery.Error](err)
	if !ok {
		return err
	}
	s.noteResult(ctx, c, &e.Result)
	known := sendProblems[e.Kind]
	p := &problem{kind: known.kind, retryAfter: cmp.Or(e.RetryAfter, known.retry), smtp: e.Reply, cause: e.Err}
	if known.quota {
		p.charged = &charge{quota: s.counted(c.mailbox, traits, e.Result.Decision), id: e.Result.ID}
	}
	v := &e.Result.Decision.Verdict
	switch {
	case e.Kind == delivery.Limited:
		s.metrics.denied(e.Result.Decision.Rule, v.Limit)
		return denied(p.charged)
	case e.Kind == delivery.InFlight:
		p.retryAfter = min(p.retryAfter, inFlightRetry)
	case e.Kind == delivery.Busy:
		p.retryAfter = max(p.retryAfter, busyRetry)
	case e.Kind == delivery.Deferred:
		p.detail = "The relay does not accept this recipient now. Nothing was sent, and the mailbox was not charged."
	}
	if errors.Is(err, delivery.ErrQueue) {
		p.detail = "The queue is too long for this send to leave in time. Nothing was sent and nothing charged."
	}
	s.metrics.sent(string(e.Kind))
	return p
}

// noteResult tells the log how far a send came, and which shadow rules would have refused it.
func (s *Server) noteResult(ctx context.Context, c *call, r *delivery.Result) {
	c.id, c.delay, c.degraded = r.ID, r.Decision.Delay, r.Decision.Degraded
	for _, refusal := range r.Decision.Shadow {
		attrs := []slog.Attr{slog.String("request_id", c.requestID), slog.String("mailbox", c.mailbox.Hash()), slog.String("rule", refusal.Rule)}
		if refusal.Err != nil {
			s.with.Log.LogAttrs(ctx, slog.LevelWarn, "a shadow rule cannot be asked", append(attrs, slog.String("cause", refusal.Err.Error()))...)
			continue
		}
		s.metrics.shadowed(refusal.Rule, refusal.Verdict.Limit)
		s.with.Log.LogAttrs(ctx, slog.LevelInfo, "a shadow rule would have refused",
			append(attrs, slog.String("limit", refusal.Verdict.Limit), slog.Int64("wait_ms", wire.Wait(&refusal.Verdict)))...)
	}
}

// noteInside warns once that a rule counts by an address that no visitor on the Internet has:
// behind a load balancer all visitors would be one.
func (s *Server) noteInside(ctx context.Context, c *call, send rules.Send) {
	if !network.Inside(send.Client) || s.insideTold.Load() || !c.live.Rules.CountsBy(rules.ByClientIP, send) || s.insideTold.Swap(true) {
		return
	}
	s.with.Log.LogAttrs(ctx, slog.LevelWarn, "client_ip is an address inside a network: if it is that of a load balancer or a proxy, "+
		"all visitors are counted as one and will be refused together; this is said once",
		slog.String("request_id", c.requestID), slog.String("key", c.key))
}

// sendTo is a send of which only the mailbox is known.
func sendTo(mailbox address.Address) rules.Send {
	return rules.Send{Mailbox: mailbox.Key(), Domain: mailbox.Domain()}
}

// noCaller is what callers are counted as where no key is asked for.
const noCaller = "local"

func (c *call) caller() string { return cmp.Or(c.key, noCaller) }

// The outcomes in metrics beside those of package delivery.
const (
	sendDone     = "sent"
	sendReplayed = "replayed"
)

// inFlightRetry is how many milliseconds a caller is told to wait for another attempt, at most.
const inFlightRetry = 1000

// replayed answers with the first answer.
func (s *Server) replayed(c *call, out *answer, first idempotency.Answer) {
	s.metrics.sent(sendReplayed)
	c.replayed, c.problem = true, nameIn(first.Body)
	out.replay(first)
}

// kept is the answer as it is given again.
func (a *answer) kept() idempotency.Answer {
	all := idempotency.Answer{Status: a.status, Body: a.body, Header: []idempotency.Field{{Name: "Content-Type", Value: a.contentType}}}
	if len(a.limits) > 0 {
		all.Header = append(all.Header,
			idempotency.Field{Name: wire.RateLimitPolicyHeader, Value: wire.RateLimitPolicy(a.limits)},
			idempotency.Field{Name: wire.RateLimitHeader, Value: wire.RateLimit(a.limits)})
	}
	return all
}

// replay is the first answer once more, and says that it is.
func (a *answer) replay(first idempotency.Answer) {
	a.status, a.body = first.Status, first.Body
	for _, field := range first.Header {
		if field.Name == "Content-Type" {
			a.contentType = field.Value
			continue
		}
		a.add(field.Name, field.Value)
	}
	a.add("Idempotent-Replayed", "true")
}

// sent is the answer to a mail that a relay has accepted.
type sent struct {
	charge
	to     address.Address
	result delivery.Result
}

func writeSent(out *answer, done *sent) {
	out.show(&done.quota)
	out.encode(struct {
		Status    string `json:"status"`
		ID        string `json:"id"`
		MessageID string `json:"message_id"`
		Email     string `json:"email"`
		ExpiresIn int64  `json:"expires_in_ms,omitzero"`
		wire.Verdict
	}{"sent", done.id.String(), done.result.MessageID, done.to.String(), done.result.ExpiresIn, out.told(&done.quota)})
}
