package api

import (
	"bytes"
	"errors"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle/rules"
)

// sendOnce sends under an Idempotency-Key. An invalid request leaves its key unused, so that it can be
// corrected and sent under the same one. But a request whose template is gone or has changed may have
// been sent before a reload: it gets the first answer then.
func (s *Server) sendOnce(c *fiber.Ctx, key string, body *sendBody, wrong []fieldProblem) error {
	r := requestOf(c)
	if !onlyTemplate(wrong) {
		return invalidFields(wrong)
	}
	name := idempotency.Name{Caller: r.callerName(), Key: key}
	attempt, replay, err := s.delivery.Begin(r.ctx, r.id, name, s.names.request("POST /send-code", c.Request().Body()))
	switch {
	case len(wrong) > 0 && isMismatch(err):
		return invalidFields(wrong)
	case err != nil:
		return s.notSent(r, rules.Send{}, err)
	case replay != nil:
		s.replay(c, replay)
		return nil
	case len(wrong) > 0 && !attempt.MayHaveLeft():
		return s.notSent(r, rules.Send{}, attempt.Refuse(invalidFields(wrong)))
	}
	err = s.send(c, attempt, body)
	if attempt.Answered() {
		if err != nil {
			err = s.fail(c, err)
		}
		attempt.Finish(answerOf(c))
	}
	return err
}

// onlyTemplate reports whether a request may have been valid before a reload.
func onlyTemplate(wrong []fieldProblem) bool {
	return !slices.ContainsFunc(wrong, func(f fieldProblem) bool { return f.Field != "template" && f.Field != "data" })
}

func isMismatch(err error) bool {
	e, ok := errors.AsType[*delivery.Error](err)
	return ok && e.Kind == delivery.Mismatch
}

// readKey returns the request's Idempotency-Key, or "".
func readKey(c *fiber.Ctx) (key string, err error) {
	fields := c.Request().Header.PeekAll("Idempotency-Key")
	if len(fields) == 0 {
		return "", nil
	}
	key, err = idempotency.ParseKey(string(bytes.Join(fields, []byte(", "))))
	if err != nil {
		return "", &problem{kind: badRequest, detail: "The Idempotency-Key must be 1 to 255 visible ASCII characters, in double quotes."}
	}
	return key, nil
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
func (s *Server) replay(c *fiber.Ctx, first *idempotency.Answer) {
	r := requestOf(c)
	s.metrics.sent(outcomeReplayed)
	r.replayed, r.problem = true, problemIn(first.Body)
	for _, field := range first.Header {
		set(c, field.Name, field.Value)
	}
	set(c, "Idempotent-Replayed", "true")
	c.Status(first.Status)
	c.Response().SetBodyRaw(first.Body)
}
