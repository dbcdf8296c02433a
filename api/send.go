package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle/rules"
)

// sendBody is the body of POST /send-code. Its code and data are checked by the template.
type sendBody struct {
	Email    email             `json:"email" validate:"address"`
	Code     *string           `json:"code" validate:"omitnil,ne="`
	Purpose  *string           `json:"purpose" validate:"omitnil,excluded_with=Code,purpose"`
	Template string            `json:"template"`
	Locale   string            `json:"locale" validate:"printable"`
	ClientIP *string           `json:"client_ip" validate:"omitnil,ip"`
	Data     map[string]string `json:"data"`
	// Challenge is the token of a challenge. One that is not solved is none.
	Challenge string `json:"challenge"`

	send delivery.Send
	// gone is what is wrong with the template or its data, where that may be since a reload.
	gone []fieldProblem
}

// sendAnswer is the answer to an email that a relay has accepted.
type sendAnswer struct {
	Status    string `json:"status"`
	ID        string `json:"id"`
	MessageID string `json:"message_id"`
	Email     string `json:"email"`
	ExpiresIn int64  `json:"expires_in_ms,omitzero"`
}

// check makes the send of the body, and asks the composer what is wrong with its email.
func (b *sendBody) check(s *Server, r *request, wrong []fieldProblem) []fieldProblem {
	r.mailbox = b.Email.Address
	traits := sendTo(r.mailbox)
	traits.Caller, traits.Template = r.callerName(), cmp.Or(b.Template, message.DefaultTemplate)
	traits.Client, _ = netip.ParseAddr(text(b.ClientIP))
	traits.Purpose = text(b.Purpose)
	r.visitor = traits.Client
	b.send = delivery.Send{
		Rules: r.live.Rules, Composer: r.live.Composer, Purpose: text(b.Purpose), Traits: traits, Decided: r.decided,
		Mail: message.Request{To: r.mailbox, Code: text(b.Code), Template: b.Template, Locale: b.Locale, Data: b.Data},
	}
	r.isAbout(&b.send)
	for _, err := range s.delivery.Check(b.send) {
		reason := "invalid"
		if err.Field == "template" {
			reason = "unknown"
		}
		wrong = append(wrong, fieldProblem{err.Field, reason, err.Field + " " + err.Reason + "."})
	}
	if r.idempotencyKey != "" && onlyTemplate(wrong) {
		b.gone, wrong = wrong, nil
	}
	return wrong
}

// text returns the text of a field that may be missing.
func text(field *string) string {
	if field == nil {
		return ""
	}
	return *field
}

// sendCode handles POST /send-code.
func (s *Server) sendCode(r *request, body *sendBody) (any, error) {
	attempt, err := s.attempt(r, body)
	if attempt == nil {
		return written{}, err
	}
	s.solve(r, &body.send.Traits, body.Challenge)
	traits := body.send.Traits
	s.warnOfInside(r, traits)
	result, err := attempt.Send(body.send)
	if err != nil {
		return s.keep(r, attempt, nil, s.notSent(r, traits, err))
	}
	s.noteSent(r, &result)
	answer := &sendAnswer{"sent", result.ID.String(), result.MessageID, r.mailbox.String(), result.ExpiresIn}
	return s.keep(r, attempt, reported{answer, s.reportSend(r, traits, &result.Decision)}, nil)
}

// sendProblems are the answers to sends that were not accepted, but for those that a limit refused.
var sendProblems = map[delivery.Kind]struct {
	kind   *kind
	retry  int64  // milliseconds, if no better time is known
	report bool   // the answer has the limits
	detail string // instead of the kind's
}{
	delivery.Rejected:    {kind: recipientRejected, report: true},
	delivery.Suppressed:  {kind: recipientSuppressed},
	delivery.Denied:      {kind: recipientDenied},
	delivery.Unavailable: {kind: relayUnavailable, retry: 10_000},
	delivery.Deferred:    {kind: relayUnavailable, retry: 10_000, detail: "The relay deferred this recipient. Nothing was sent, and the mailbox was not charged."},
	delivery.Busy:        {kind: busy, retry: soon},
	delivery.Storage:     {kind: storeUnavailable, retry: soon, detail: "The storage cannot be read or written. Nothing was sent."},
	delivery.InFlight:    {kind: keyInFlight, retry: soon},
	delivery.Mismatch:    {kind: keyMismatch},
	delivery.Unknown:     {kind: deliveryUnknown, report: true},
	delivery.Failed:      {kind: internal},
}

// notSent maps an error of package delivery to its answer.
func (s *Server) notSent(r *request, traits rules.Send, err error) error {
	e, ok := errors.AsType[*delivery.Error](err)
	if !ok {
		return err
	}
	s.noteResult(r, &e.Result)
	if said, ok := errors.AsType[*relay.Error](err); ok && said.Reply != nil {
		r.noteReply(said.Relay, *said.Reply)
	}
	if d := &e.Result.Decision; e.Kind == delivery.Limited && d.Challenge && r.door == httpDoor {
		return s.challenged(r, traits, d)
	} else if e.Kind == delivery.Limited {
		s.metrics.denied(r, d.Rule, d.Verdict.Limit)
		return denied(s.reportSend(r, traits, d))
	}
	known := sendProblems[e.Kind]
	p := &problem{kind: known.kind, detail: known.detail, retryAfter: cmp.Or(e.RetryAfter, known.retry), smtp: e.Reply, rule: e.Rule, cause: e.Err}
	if e.Kind == delivery.Suppressed {
		p.suppression = suppressedBy(e.Suppression)
		r.only = append(r.only, slog.String("reason", string(e.Suppression.Reason)))
	}
	if e.Rule != "" {
		r.reports(report.Report{Rule: e.Rule})
	}
	if known.report {
		p.id, p.report = e.Result.ID, s.reportSend(r, traits, &e.Result.Decision)
	}
	if errors.Is(err, delivery.ErrQueue) {
		p.detail = "The queue is too long to send this email in time. Nothing was sent or charged."
	}
	r.outcome = string(e.Kind)
	s.metrics.count(r.door, r.outcome, e.Rule, "")
	return p
}

// noteSent records and counts an email that a relay has accepted.
func (s *Server) noteSent(r *request, result *delivery.Result) {
	s.noteResult(r, result)
	r.noteReply(result.Receipt.Relay, result.Receipt.Reply)
	s.metrics.sent(r, outcomeSent)
}

// noteResult records for the log how far a send came, and logs and counts the shadow rules that would
// have refused it.
func (s *Server) noteResult(r *request, result *delivery.Result) {
	r.admission = result.ID
	r.reports(report.Report{Delay: result.Decision.Delay, Degraded: result.Decision.Degraded})
	s.noteShadows(r.door, r.id, r.mailbox, result.Decision)
}

func (s *Server) noteShadows(door, requestID string, to address.Address, d rules.Decision) {
	for _, refusal := range d.Shadow {
		attrs := []slog.Attr{slog.String("request_id", requestID), slog.String("mailbox", to.Hash()), slog.String("rule", refusal.Rule)}
		if refusal.Err != nil {
			s.with.Log.LogAttrs(s.alive, slog.LevelWarn, "a shadow rule cannot be asked", append(attrs, slog.String("cause", refusal.Err.Error()))...)
			continue
		}
		s.metrics.shadows.WithLabelValues(door, refusal.Rule, refusal.Verdict.Limit).Inc()
		s.with.Log.LogAttrs(s.alive, slog.LevelInfo, "a shadow rule would have refused",
			append(attrs, slog.String("limit", refusal.Verdict.Limit), slog.Int64("wait_ms", refusal.Verdict.RetryAt-refusal.Verdict.Now))...)
	}
}

// warnOfInside warns once if a rule counts by an address of a private network: it may be that of a
// load balancer, and all visitors would be counted as one.
func (s *Server) warnOfInside(r *request, send rules.Send) {
	if !network.Inside(send.Client) || s.warnedOfInside.Load() || !r.live.Rules.CountsBy(rules.ByClientIP, send) || s.warnedOfInside.Swap(true) {
		return
	}
	s.with.Log.LogAttrs(context.Background(), slog.LevelWarn, "client_ip is an address inside a network: if it is that of a load balancer or a proxy, "+
		"all visitors are counted as one and will be refused together; this is said once",
		slog.String("request_id", r.id), slog.String("key", r.key))
}

// sendTo returns a send with nothing but the mailbox.
func sendTo(mailbox address.Address) rules.Send {
	return rules.Send{Mailbox: mailbox.Key()}
}

func (r *request) callerName() string { return rules.Caller(r.key) }

// The outcomes in metrics beside those of package delivery.
const (
	outcomeSent       = "sent"
	outcomeReplayed   = "replayed"
	outcomeChallenged = "challenged"
)
