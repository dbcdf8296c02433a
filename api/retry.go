package api

import (
	"bytes"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
)

// attempt begins a send, or returns the answer that the first under its Idempotency-Key had. An invalid request leaves
// its key unused, so that it can be corrected and sent under the same one. But a request whose template is gone or has
// changed may have been sent before a reload: it gets the first answer then.
func (s *Server) attempt(r *request, body *sendBody) (*delivery.Attempt, *idempotency.Answer, error) {
	if r.idempotencyKey == "" {
		return s.with.Delivery.Attempt(r.ctx, r.RequestID), nil, nil
	}
	traits, gone := body.send.Traits, invalidFields(body.gone...)
	name := idempotency.Name{Caller: r.callerName(), Key: r.idempotencyKey}
	attempt, first, err := s.with.Delivery.Begin(r.ctx, r.RequestID, name, s.names.request("POST /send-code", r.c.Request().Body()))
	switch {
	case gone != nil && ledger.Of(err) == ledger.Mismatch:
		return nil, nil, gone
	case err != nil:
		return nil, nil, s.notSent(r, traits, err)
	case first != nil:
		r.What, r.Replayed, r.Problem = ledger.Replayed, true, problemIn(first.Body)
	case gone != nil && !attempt.MayHaveLeft():
		return nil, nil, s.notSent(r, traits, attempt.Refuse(gone))
	}
	return attempt, first, nil
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

// keepAnswer keeps the answer that was written, if it is one for retries.
func (r *request) keepAnswer() {
	if r.attempt == nil || !r.attempt.Answered() {
		return
	}
	response := r.c.Response()
	answer := idempotency.Answer{Status: response.StatusCode(), Body: bytes.Clone(response.Body())}
	for name, value := range response.Header.All() {
		if slices.Contains(keptHeaders, string(name)) {
			answer.Header = append(answer.Header, idempotency.Field{Name: string(name), Value: string(value)})
		}
	}
	r.attempt.Finish(answer)
}

// replay answers a retry with the first answer.
func replay(c *fiber.Ctx, first *idempotency.Answer) {
	for _, field := range first.Header {
		set(c, field.Name, field.Value)
	}
	set(c, "Idempotent-Replayed", "true")
	c.Status(first.Status)
	c.Response().SetBodyRaw(first.Body)
}
