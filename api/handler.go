package api

import (
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/wire"
)

// step is what a route does before its handler: it bounds the requests, asks for a key, or reads a name
// in the path.
type step func(*request) error

func (r *request) take(steps []step) error {
	for _, next := range steps {
		if err := next(r); err != nil {
			return err
		}
	}
	return nil
}

// page makes the handler of a route that writes its answer itself.
func page(show fiber.Handler, steps ...step) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := requestOf(c).take(steps); err != nil {
			return err
		}
		return show(c)
	}
}

// handler makes the handler of a route: after its steps it reads the body and checks it, calls do, and
// answers with what that returns as JSON.
func handler[B any](s *Server, do func(*request, *B) (any, error), steps ...step) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := requestOf(c)
		if err := r.take(steps); err != nil {
			return err
		}
		body := new(B)
		if err := s.readBody(r, body); err != nil {
			return err
		}
		answer, err := do(r, body)
		if err != nil {
			return err
		}
		return respond(c, answer)
	}
}

// none is the body of a route without one.
type none struct{}

// checked is a body with rules that are not in its tags. check returns what is wrong with it, with what
// the tags have found.
type checked interface {
	check(s *Server, r *request, wrong []fieldProblem) []fieldProblem
}

// readBody reads a body that is one JSON object into a struct, and checks it.
func (s *Server) readBody(r *request, into any) error {
	if _, without := into.(*none); without {
		return nil
	}
	if err := checkEncoding(r.c); err != nil {
		return err
	}
	if !isJSON(r.c.Request().Header.ContentType()) {
		return &problem{kind: badRequest, detail: "The Content-Type must be application/json, in UTF-8."}
	}
	if err := readObject(r.c.Request().Body(), into, s.reading); err != nil {
		return err
	}
	wrong := s.check(into)
	if body, ok := into.(checked); ok {
		wrong = body.check(s, r, wrong)
	}
	return invalidFields(wrong...)
}

// optionalBody takes no body for an empty object.
func optionalBody(r *request) error {
	if request := r.c.Request(); len(request.Body()) == 0 {
		request.Header.SetContentType(jsonType)
		request.SetBodyString("{}")
	}
	return nil
}

// reported is an answer with a report at its end.
type reported struct {
	answer any
	report *report.Report
}

// noContent is the answer to what has nothing to say.
type noContent struct{}

// respond answers with a struct as JSON. Nil is an answer that has been written already.
func respond(c *fiber.Ctx, answer any) error {
	switch answer := answer.(type) {
	case nil:
		return nil
	case *idempotency.Answer:
		replay(c, answer)
		return nil
	case noContent:
		c.Status(fiber.StatusNoContent)
		return nil
	case reported:
		showLimits(c, answer.report)
		body := wire.Open(wire.Encode(answer.answer))
		answer.report.AppendTo(&body)
		c.Response().Header.SetContentType(jsonType)
		c.Response().SetBodyRaw(body.End())
		return nil
	}
	return respondRaw(c, jsonType, wire.Encode(answer))
}

// showLimits sets the header fields of a report.
func showLimits(c *fiber.Ctx, of *report.Report) {
	if policy, state := of.Header(); len(policy) > 0 {
		set(c, report.RateLimitPolicy, policy)
		set(c, report.RateLimit, state)
	}
}

// respondRaw answers with a finished body.
func respondRaw(c *fiber.Ctx, contentType string, body []byte) error {
	c.Response().Header.SetContentType(contentType)
	c.Response().SetBodyRaw(body)
	return nil
}
