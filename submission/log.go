package submission

import (
	"errors"
	"log/slog"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
)

// entry is what came of one recipient or a sign-in.
type entry struct {
	what   *ledger.What
	to     address.Address
	result delivery.Result
	answer *reply         // nil: the client ended the email
	report *report.Report // of a refusal
	cause  error
}

// note notes what came of a recipient or a sign-in.
func (s *session) note(e entry) {
	o := ledger.Outcome{
		What: e.what, Door: ledger.SMTP, Key: s.key, RequestID: s.id, From: s.conn.from, Mailbox: e.to, ID: e.result.ID, Cause: e.cause, Level: slog.LevelInfo,
	}
	if s.id != "" {
		o.Began = s.began
	}
	if s.life != nil {
		o.TraceID = trace.Of(s.life).TraceID()
		trace.Event(s.life, e.what.Word, 0)
	}
	if a := e.answer; a != nil {
		o.Status, o.Enhanced = a.code, a.enhanced
		if a.code/100 == 4 && e.report == nil {
			o.Level = slog.LevelWarn
		}
	}
	if e.report != nil {
		o.Report = *e.report
	} else if e.result.ID.Valid() {
		o.Report = report.Of(&e.result.Decision, "", func(string) string { return "" }, s.server.Now())
	}
	if refused, ok := errors.AsType[*delivery.Error](e.cause); ok {
		o.Reason = string(refused.Suppression.Reason)
	}
	if refused, ok := errors.AsType[*relay.Error](e.cause); ok && refused.Reply != nil {
		o.Relay, o.Reply = refused.Relay, refused.Reply
	} else if e.what == ledger.Sent {
		said := s.mail.Receipt()
		o.Relay, o.Reply = said.Relay, &said.Reply
	}
	s.server.Ledger.Note(&o)
}
