package submission

import (
	"errors"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
)

// door names this one in logs and metrics.
const door = "smtp"

// The outcomes beside those of package delivery. Only the first is counted.
const (
	sent      = "sent"
	abandoned = "abandoned" // its client did not finish the email
	repeated  = "repeated"  // it was answered before
)

// entry is one line of the log, about one recipient or a sign-in.
type entry struct {
	to      address.Address
	result  delivery.Result
	answer  *reply         // nil: the client ended the email
	report  *report.Report // of a refusal
	outcome string
	cause   error
}

// only is what operators are shown beside the log line: what each limit, the suppression list and the relay said.
func (s *session) only(e entry) (attrs []slog.Attr) {
	told := e.report
	if d := e.result.Decision; told == nil && e.result.ID.Valid() {
		of := report.Of(&d, "", func(string) string { return "" }, s.server.Now())
		told = &of
	}
	if told != nil {
		attrs = append(attrs, slog.String("said", told.Said()))
	}
	if refused, ok := errors.AsType[*delivery.Error](e.cause); ok && refused.Kind == delivery.Suppressed {
		attrs = append(attrs, slog.String("reason", string(refused.Suppression.Reason)))
	}
	if refused, ok := errors.AsType[*relay.Error](e.cause); ok && refused.Reply != nil {
		attrs = append(attrs, slog.String("relay", refused.Relay), slog.String("reply", refused.Reply.Masked(e.to)))
	} else if e.outcome == sent {
		attrs = append(attrs, slog.String("relay", s.mail.Receipt().Relay), slog.String("reply", s.mail.Receipt().Reply.Masked(e.to)))
	}
	return attrs
}

// traceID returns that of the open email, or "".
func (s *session) traceID() string {
	if s.life == nil {
		return ""
	}
	return trace.Of(s.life).TraceID()
}

// log writes a line with the names that the line of a request over HTTP has, and counts what came of a
// recipient.
func (s *session) log(e entry) {
	level := slog.LevelInfo
	attrs := []slog.Attr{slog.String("door", door), slog.String("outcome", e.outcome), slog.String("from", s.conn.from.String())}
	if s.id != "" {
		attrs = append(attrs, slog.String("request_id", s.id), slog.Float64("ms", float64(time.Since(s.began).Microseconds())/1000))
	}
	if id := s.traceID(); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	if a := e.answer; a != nil {
		attrs = append(attrs, slog.Int("status", a.code), slog.String("enhanced", a.enhanced))
		if a.code/100 == 4 && e.report == nil {
			level = slog.LevelWarn
		}
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
	var of report.Report
	if e.report != nil {
		of = *e.report
	}
	attrs = of.AppendAttrs(attrs)
	if e.cause != nil {
		attrs = append(attrs, slog.String("cause", e.cause.Error()))
	}
	if s.life != nil {
		trace.Event(s.life, e.outcome, 0)
	}
	s.server.Log.LogAttrs(s.server.life, level, "submission", attrs...)
	if !e.to.IsZero() {
		s.server.Keep(append(attrs, s.only(e)...))
	}
	if !e.to.IsZero() && e.outcome != abandoned && e.outcome != repeated {
		s.server.Count(door, e.outcome, of.Rule, of.Limit)
	}
}
