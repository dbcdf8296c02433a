package api

import (
	"cmp"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/internal/trace"
)

// accessLog answers the errors of the handlers behind it, keeps the answer for retries, writes the request's log line and
// counts the request. It recovers panics itself: Fiber's middleware would log the panic's value, which may hold anything.
func (s *Server) accessLog(c *fiber.Ctx) (err error) {
	r := s.begin(c)
	defer func() {
		value := recover()
		if value != nil {
			err = recovered.From(value)
		}
		if err != nil {
			err = s.fail(c, err)
		}
		if value == nil {
			r.keepAnswer()
		}
		if s.draining.Load() {
			c.Context().SetConnectionClose()
		}
		s.record(r)
		s.finish(r)
	}()
	return c.Next()
}

// record counts the request, and notes what it came to.
func (s *Server) record(r *request) {
	r.Status, r.Route = r.c.Response().StatusCode(), cmp.Or(r.Route, r.c.Route().Name, "none")
	s.metrics.requests.WithLabelValues(r.Route, strconv.Itoa(r.Status)).Inc()
	if !r.Unlogged {
		s.metrics.durations.WithLabelValues(r.Route).Observe(time.Since(r.Began).Seconds())
	}
	r.Report.Rule = cmp.Or(r.Report.Rule, r.counted.Name)
	s.with.Ledger.Note(&r.Outcome)
}

// noteEarlier notes what the request has come to, before it does more of the kind.
func (s *Server) noteEarlier(r *request) {
	earlier := r.Outcome
	earlier.Route, earlier.Status = r.c.Route().Name, fiber.StatusOK
	earlier.TraceID, earlier.Span = r.Span.TraceID(), trace.Span{}
	s.with.Ledger.Note(&earlier)
	r.What = nil
}
