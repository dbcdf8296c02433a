package api

import (
	"bytes"
	"errors"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
)

// attempt begins a send. Without one the request has been answered, as the first under its
// Idempotency-Key was, or fails. An invalid request leaves its key unused, so that it can be corrected
// and sent under the same one. But a request whose template is gone or has changed may have been sent
// before a reload: it gets the first answer then.
func (s *Server) attempt(r *request, body *sendBody) (*delivery.Attempt, error) {
	if r.idempotencyKey == "" {
		return s.with.Delivery.Attempt(r.ctx, r.RequestID), nil
	}
	traits, gone := body.send.Traits, invalidFields(body.gone)
	name := idempotency.Name{Caller: r.callerName(), Key: r.idempotencyKey}
	attempt, first, err := s.with.Delivery.Begin(r.ctx, r.RequestID, name, s.names.request("POST /send-code", r.c.Request().Body()))
	switch {
	case gone != nil && isKind(err, delivery.Mismatch):
		return nil, gone
	case err != nil:
		return nil, s.notSent(r, traits, err)
	case first != nil:
		s.replay(r, first)
		return nil, nil
	case gone != nil && !attempt.MayHaveLeft():
		return nil, s.notSent(r, traits, attempt.Refuse(gone))
	}
	return attempt, nil
}

// answerAttempt writes an answer that retries under its key get as well, if it is one.
func (s *Server) answerAttempt(r *request, attempt *delivery.Attempt, answer any, err error) (any, error) {
	if !attempt.Answered() {
		return answer, err
	}
	if err == nil {
		err = respond(r.c, answer)
	}
	if err != nil {
		err = s.fail(r.c, err)
	}
	attempt.Finish(answerOf(r.c))
	return alreadyWritten{}, err
}

// onlyTemplate reports whether a request may have been valid before a reload.
func onlyTemplate(wrong []fieldProblem) bool {
	return !slices.ContainsFunc(wrong, func(f fieldProblem) bool { return f.Field != "template" && f.Field != "data" })
}

// isKind reports whether an error of package delivery is of a kind.
func isKind(err error, kind delivery.Kind) bool {
	e, ok := errors.AsType[*delivery.Error](err)
	return ok && e.Kind == kind
}

// readKey reads the request's Idempotency-Key, if it has one.
func readKey(r *request) (err error) {
	fields := r.c.Request().Header.PeekAll("Idempotency-Key")
	if len(fields) == 0 {
		return nil
	}
	r.idempotencyKey, err = idempotency.ParseKey(string(bytes.Join(fields, []byte(", "))))
	if err != nil {
		return &problem{kind: badRequest, detail: "The Idempotency-Key must be 1 to 255 visible ASCII characters, in double quotes."}
	}
	return nil
}

// keptHeaders are those of an answer that a retry gets as well.
var keptHeaders = []string{fiber.HeaderContentType, report.RateLimitPolicy, report.RateLimit}

// answerOf returns the answer that was written, to be kept for retries.
func answerOf(c *fiber.Ctx) idempotency.Answer {
	response := c.Response()
	answer := idempotency.Answer{Status: response.StatusCode(), Body: bytes.Clone(response.Body())}
	for name, value := range response.Header.All() {
		if slices.Contains(keptHeaders, string(name)) {
			answer.Header = append(answer.Header, idempotency.Field{Name: string(name), Value: string(value)})
		}
	}
	return answer
}

// replay answers a retry with the first answer.
func (s *Server) replay(r *request, first *idempotency.Answer) {
	r.What, r.Replayed, r.Problem = ledger.Replayed, true, problemIn(first.Body)
	for _, field := range first.Header {
		set(r.c, field.Name, field.Value)
	}
	set(r.c, "Idempotent-Replayed", "true")
	r.c.Status(first.Status)
	r.c.Response().SetBodyRaw(first.Body)
}
