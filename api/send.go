package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
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
	b.send = delivery.Send{
		Purpose: text(b.Purpose), Traits: rules.Send{Purpose: text(b.Purpose)},
		Mail: message.Request{To: b.Email.Address, Code: text(b.Code), Template: b.Template, Locale: b.Locale, Data: b.Data},
	}
	if b.ClientIP != nil {
		b.send.Traits.Client, _ = netip.ParseAddr(*b.ClientIP)
	}
	mistakes := s.complete(r, &b.send)
	s.isAbout(r, &b.send)
	if hasField(wrong, "purpose") { // which may hold anything
		r.Purpose = ""
	}
	for _, err := range mistakes {
		reason := "invalid"
		if err.Field == "template" {
			reason = "unknown"
		}
		wrong = append(wrong, fieldProblem{err.Field, reason, err.Field + " " + err.Reason + "."})
	}
	beforeReload := !slices.ContainsFunc(wrong, func(f fieldProblem) bool { return f.Field != "template" && f.Field != "data" })
	if r.idempotencyKey != "" && beforeReload { // it may have been valid then
		b.gone, wrong = wrong, nil
	}
	return wrong
}

// complete adds what the body of a request or a call does not know of a send, and returns what is wrong with its email.
func (s *Server) complete(r *request, send *delivery.Send) []*message.Error {
	traits := &send.Traits
	send.Rules, send.Composer, send.Decided = r.live.Rules, r.live.Composer, r.decided
	traits.Mailbox, traits.Caller, traits.Template = send.Mail.To.Key(), r.callerName(), cmp.Or(send.Mail.Template, message.DefaultTemplate)
	r.Visitor = traits.Client
	s.warnOfInside(r, *traits)
	return s.with.Delivery.Check(*send)
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
	attempt, first, err := s.attempt(r, body)
	if attempt == nil {
		return first, err
	}
	r.attempt = attempt
	s.solve(r, &body.send.Traits, body.Challenge)
	traits := body.send.Traits
	result, err := attempt.Send(body.send)
	if err != nil {
		return nil, s.notSent(r, traits, err)
	}
	s.noteSent(r, &result)
	rep := s.reportSend(r, traits, &result.Decision)
	return reported{&sendAnswer{"sent", result.ID.String(), result.MessageID, r.Mailbox.String(), result.ExpiresIn}, rep}, nil
}

// notSent maps an error of package delivery to its answer.
func (s *Server) notSent(r *request, traits rules.Send, err error) error {
	e, ok := errors.AsType[*delivery.Error](err)
	if !ok {
		return err
	}
	s.noteResult(r, &e.Result)
	if said, ok := errors.AsType[*relay.Error](err); ok && said.Reply != nil {
		r.Relay, r.Reply = said.Relay, said.Reply
	}
	r.What = ledger.Of(err)
	var rep *report.Report
	if r.What == ledger.Limited || r.What.Charged {
		rep = s.reportSend(r, traits, &e.Result.Decision)
	}
	switch {
	case r.What == ledger.Limited && e.Result.Decision.Challenge && r.Door == ledger.HTTP:
		return s.challenged(r, traits, rep)
	case r.What == ledger.Limited:
		return denied(rep)
	}
	p := &problem{kind: kinds[r.What.Problem], detail: r.What.Detail, retryAfter: cmp.Or(e.RetryAfter, r.What.Retry), cause: e.Err, members: members{SMTP: e.Reply, Rule: e.Rule}}
	if e.Suppression.Reason != "" {
		p.Suppressed, r.Reason = &suppressed{e.Suppression.Reason, e.Suppression.Until}, string(e.Suppression.Reason)
	}
	if r.What.Charged {
		if p.report = rep; e.Result.ID.Valid() {
			p.ID = e.Result.ID.String()
		}
	} else {
		r.Report.Rule = e.Rule
	}
	if errors.Is(err, delivery.ErrQueue) {
		p.detail = "The queue is too long to send this email in time. Nothing was sent or charged."
	}
	return p
}

// noteSent notes an email that a relay has accepted.
func (s *Server) noteSent(r *request, result *delivery.Result) {
	s.noteResult(r, result)
	r.What, r.Relay, r.Reply = ledger.Sent, result.Receipt.Relay, &result.Receipt.Reply
}

// noteResult notes how far a send came, and the shadow rules that would have refused it.
func (s *Server) noteResult(r *request, result *delivery.Result) {
	r.ID, r.Code = result.ID, result.Code
	r.reports(report.Report{Delay: result.Decision.Delay, Degraded: result.Decision.Degraded})
	s.with.Ledger.Shadows(r.Door, r.RequestID, r.Mailbox, &result.Decision)
}

// warnOfInside warns once if a rule counts by an address of a private network: it may be that of a
// load balancer, and all visitors would be counted as one.
func (s *Server) warnOfInside(r *request, send rules.Send) {
	if !network.Inside(send.Client) || s.warnedOfInside.Load() || !r.live.Rules.CountsBy(rules.ByClientIP, send) || s.warnedOfInside.Swap(true) {
		return
	}
	s.with.Log.LogAttrs(context.Background(), slog.LevelWarn, "client_ip is an address inside a network: if it is that of a load balancer or a proxy, "+
		"all visitors are counted as one and will be refused together; this is said once",
		slog.String("request_id", r.RequestID), slog.String("key", r.Key))
}

// sendTo returns a send with nothing but the mailbox.
func sendTo(mailbox address.Address) rules.Send {
	return rules.Send{Mailbox: mailbox.Key()}
}

func (r *request) callerName() string { return rules.Caller(r.Key) }
