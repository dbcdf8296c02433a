package submission

import (
	"log/slog"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/throttle/rules"
)

// note notes what came of a sign-in or a recipient. Without an answer the client ended the email.
func (s *session) note(o ledger.Outcome, answer *reply) {
	o.Door, o.Key, o.RequestID, o.From, o.Level = ledger.SMTP, s.conn.key, s.id, s.conn.from, slog.LevelInfo
	if s.id != "" {
		o.Began = s.began
	}
	if s.life != nil {
		o.TraceID = trace.Of(s.life).TraceID()
		trace.Event(s.life, o.What.Word, 0)
	}
	if answer != nil {
		o.Status, o.Enhanced = answer.code, answer.enhanced
		if answer.code/100 == 4 && o.What != ledger.Limited {
			o.Level = slog.LevelWarn
		}
	}
	s.server.Ledger.Note(&o)
}

// noteCharged notes what came of a recipient who was charged.
func (s *session) noteCharged(to delivery.Recipient, o ledger.Outcome, answer *reply) {
	o.ID, o.Report = to.ID, s.report(&to.Decision)
	s.note(o, answer)
}

func (s *session) report(d *rules.Decision) report.Report {
	return report.Of(d, "", func(string) string { return "" }, s.server.Now())
}
