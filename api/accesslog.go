package api

import (
	"cmp"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/recovered"
)

// accessLog answers the errors of the handlers behind it, writes the request's log line and counts
// the request. It recovers panics itself: Fiber's middleware would log the panic's value, which may
// hold anything.
func (s *Server) accessLog(c *fiber.Ctx) (err error) {
	r := s.begin(c)
	defer func() {
		if value := recover(); value != nil {
			err = recovered.From(value)
		}
		if err != nil {
			err = s.fail(c, err)
		}
		if s.draining.Load() {
			c.Context().SetConnectionClose()
		}
		s.record(c, r)
		s.finish(r)
	}()
	return c.Next()
}

// record writes the request's log line and counts it.
func (s *Server) record(c *fiber.Ctx, r *request) {
	now, status := time.Now(), c.Response().StatusCode()
	took := now.Sub(r.began)
	r.route = cmp.Or(r.route, c.Route().Name, "none")
	s.metrics.requests.WithLabelValues(r.route, strconv.Itoa(status)).Inc()
	r.endSpan(status)
	if r.unlogged {
		return
	}
	s.metrics.durations.WithLabelValues(r.route).Observe(took.Seconds())
	log, kept := s.with.Log.Handler(), r.isKept()
	logged := log.Enabled(s.alive, r.level)
	if kept || logged {
		r.describe(status, took)
	}
	if logged {
		line := slog.NewRecord(now, r.level, "request", 0) // a Logger would look for the caller's line, which is not logged
		line.AddAttrs(r.attrs...)
		_ = log.Handle(s.alive, line) // as a Logger does
	}
	if kept {
		s.keepRequest(r)
	}
}

// endSpan ends the span of the request, if it has one.
func (r *request) endSpan(status int) {
	if r.span.On() {
		r.span.Set("door", r.door)
		r.span.Set("problem", r.problem)
		r.span.Set("rule", r.report.Rule)
		r.span.Set("limit", r.report.Limit)
		r.span.Set("status", strconv.Itoa(status))
	}
	r.span.End(r.outcome)
}

// describe makes the attributes of the log line.
func (r *request) describe(status int, took time.Duration) {
	r.attrs = append(r.attrs,
		slog.String("request_id", r.id),
		slog.String("route", r.route),
		slog.Int("status", status),
		slog.Float64("ms", float64(took.Microseconds())/1000),
		slog.String("from", r.client.String()),
	)
	r.add("trace_id", r.span.TraceID())
	r.add("problem", r.problem)
	r.add("key", r.key)
	if !r.mailbox.IsZero() {
		r.attrs = append(r.attrs, slog.Any("mailbox", r.mailbox)) // logged as its hash; dev prints it
	}
	if r.admission.Valid() {
		r.add("id", r.admission.String())
	}
	r.add("outcome", r.outcome)
	r.add("action", r.action)
	r.add("subject", r.subject)
	r.report.Rule = cmp.Or(r.report.Rule, r.counted.Name)
	r.attrs = r.report.AppendAttrs(r.attrs)
	if r.replayed {
		r.attrs = append(r.attrs, slog.Bool("replayed", true))
	}
	if r.cause != nil {
		r.add("cause", r.cause.Error())
		if broken, ok := errors.AsType[recovered.Error](r.cause); ok {
			r.add("stack", broken.Stack)
		}
	}
}

// add adds an attribute that is not empty.
func (r *request) add(name, value string) {
	if value != "" {
		r.attrs = append(r.attrs, slog.String(name, value))
	}
}
