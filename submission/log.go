package submission

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle/rules"
)

// door names this one in logs and metrics.
const door = "smtp"

// abandoned is the outcome of an email that its client did not finish.
const abandoned = "abandoned"

// entry is one line of the log, about one recipient or a sign-in.
type entry struct {
	to      address.Address
	result  delivery.Result
	answer  *smtp.SMTPError // nil: the client ended the email
	report  *report.Report  // of a refusal
	outcome string
	cause   error
}

// log writes a line, and counts what came of a recipient.
func (s *session) log(e entry) {
	level := slog.LevelInfo
	attrs := []slog.Attr{slog.String("door", door), slog.String("outcome", e.outcome), slog.String("from", s.conn.from.String())}
	if s.id != "" {
		attrs = append(attrs, slog.String("request_id", s.id), slog.Float64("ms", float64(time.Since(s.began).Microseconds())/1000))
	}
	if s.key != "" {
		attrs = append(attrs, slog.String("key", s.key))
	}
	if !e.to.IsZero() {
		attrs = append(attrs, slog.Any("mailbox", e.to)) // written as its hash
	}
	if e.result.ID.Valid() {
		attrs = append(attrs, slog.String("id", e.result.ID.String()))
	}
	if a := e.answer; a != nil {
		attrs = append(attrs, slog.Int("status", a.Code), slog.String("enhanced", fmt.Sprintf("%d.%d.%d", a.EnhancedCode[0], a.EnhancedCode[1], a.EnhancedCode[2])))
		if a.Code/100 == 4 {
			level = slog.LevelWarn
		}
	}
	var rule, limit string
	if e.report != nil {
		rule, limit, level = e.report.Rule, e.report.Limit, slog.LevelInfo
		attrs = e.report.AppendAttrs(attrs)
	}
	if e.cause != nil {
		attrs = append(attrs, slog.String("cause", e.cause.Error()))
	}
	s.server.Log.LogAttrs(s.server.life, level, "submission", attrs...)
	if !e.to.IsZero() && e.outcome != abandoned && e.outcome != "repeated" {
		s.server.Count(e.outcome, rule, limit)
	}
}

// logShadows logs and counts the shadow rules that would have refused a recipient.
func (s *session) logShadows(to address.Address, d rules.Decision) {
	for _, refusal := range d.Shadow {
		attrs := []slog.Attr{slog.String("door", door), slog.String("request_id", s.id), slog.Any("mailbox", to), slog.String("rule", refusal.Rule)}
		if refusal.Err != nil {
			s.server.Log.LogAttrs(s.server.life, slog.LevelWarn, "a shadow rule cannot be asked", append(attrs, slog.String("cause", refusal.Err.Error()))...)
			continue
		}
		s.server.Shadow(refusal.Rule, refusal.Verdict.Limit)
		s.server.Log.LogAttrs(s.server.life, slog.LevelInfo, "a shadow rule would have refused", append(attrs, slog.String("limit", refusal.Verdict.Limit))...)
	}
}
