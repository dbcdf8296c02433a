package api

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
)

// kind is an answer to a request that failed: the HTTP status, the end of the problem's type, its
// title, and the detail where nothing better is known.
type kind struct {
	status              int
	name, title, detail string
}

var (
	internal            = &kind{500, "internal", "Internal server error", "The server failed. Its log has the cause under this request's X-Request-Id."}
	badRequest          = &kind{400, "bad-request", "Bad request", ""}
	unauthorized        = &kind{401, "unauthorized", "Valid key required", "Send a valid key: Authorization: Bearer, a space and the secret."}
	forbidden           = &kind{403, "forbidden", "Request from another site", "Without API keys, this server accepts requests from its own machine only. This request came from a page of another site."}
	notFound            = &kind{404, "not-found", "Not found", "No route has this path. GET /docs lists them all."}
	unknownAction       = &kind{404, "unknown-action", "Unknown action", ""}
	unknownRule         = &kind{404, "unknown-rule", "Unknown rule", ""}
	unknownCountdown    = &kind{404, "unknown-countdown", "Unknown countdown", "This token is invalid or has expired. The answer to the next send has a new one."}
	trialInProgress     = &kind{409, "trial-in-progress", "Trial in progress", "Another trial is running. Try again when it has finished."}
	methodNotAllowed    = &kind{405, "method-not-allowed", "Method not allowed", ""}
	methodUnknown       = &kind{501, "method-unknown", "Unknown method", "No route has this method."}
	requestTimeout      = &kind{408, "request-timeout", "Request timeout", "The connection is closed because the request did not arrive in time."}
	bodyTooLarge        = &kind{413, "body-too-large", "Body too large", ""}
	headerTooLarge      = &kind{431, "header-too-large", "Header too large", "The request line and headers must not exceed 8 KiB."}
	invalid             = &kind{422, "invalid", "Invalid field", "See errors, one entry for each field."}
	challengeRequired   = &kind{403, "challenge-required", "Challenge required", "A rule asks for a challenge. Solve it and send again with it; each counts once."}
	quotaExceeded       = &kind{429, "quota-exceeded", "Quota exceeded", ""}
	codeIncorrect       = &kind{422, "code-incorrect", "Incorrect code", "The code is wrong for this address and purpose."}
	codeExpired         = &kind{410, "code-expired", "No valid code", "This address has no valid code. Request a new one."}
	keyMismatch         = &kind{422, "idempotency-mismatch", "Idempotency key reused", "This Idempotency-Key was used with another body. Use a new key for a new request."}
	keyInFlight         = &kind{409, "idempotency-in-flight", "Original request still in progress", "The first request with this Idempotency-Key has not been answered yet. Retry to get its answer."}
	recipientRejected   = &kind{422, "recipient-rejected", "Recipient rejected", "The relay permanently rejected this email or its recipient. Do not retry."}
	recipientSuppressed = &kind{422, "recipient-suppressed", "Recipient suppressed", "This address is on the suppression list. Nothing was sent or charged."}
	recipientDenied     = &kind{422, "recipient-denied", "Recipient denied", "A rule of the operator denies this email, whatever the limits. Nothing was sent or charged. Do not retry."}
	relayUnavailable    = &kind{503, "relay-unavailable", "Relay unavailable", "No relay accepted the email. It was not sent, and the mailbox was not charged."}
	deliveryUnknown     = &kind{504, "delivery-unknown", "Delivery status unknown", "The relay did not confirm the email. It may arrive, and is never sent again."}
	storeUnavailable    = &kind{503, "store-unavailable", "Storage unavailable", "The storage cannot be read or written now. Try again shortly."}
	busy                = &kind{503, "busy", "Too many requests waiting", "Too many sends are waiting for the relay. Nothing was sent and the mailbox was not charged."}
	notReady            = &kind{503, "not-ready", "Not ready", "This server cannot accept requests now."}
)

// kinds are those of sends that were not accepted, by their names.
var kinds = func() map[string]*kind {
	all := map[string]*kind{}
	for _, one := range []*kind{recipientRejected, recipientSuppressed, recipientDenied, relayUnavailable, busy, storeUnavailable, keyInFlight, keyMismatch, deliveryUnknown, internal} {
		all[one.name] = one
	}
	return all
}()

// soon is the Retry-After of what may be over in a moment, in milliseconds.
const soon = 1000

// problem is an error with its answer. The caller sees all of it except the cause, which is logged.
type problem struct {
	kind       *kind
	detail     string         // instead of the kind's
	retryAfter int64          // milliseconds, for the header
	report     *report.Report // where something was charged or denied
	cause      error
	members
}

// members are those that few problems have.
type members struct {
	Errors      []fieldProblem   `json:"errors,omitempty"`
	SMTP        *relay.Reply     `json:"smtp,omitempty"`
	GuessesLeft *int             `json:"guesses_left,omitempty"` // of codeIncorrect
	Suppressed  *suppressed      `json:",inline"`                // of recipientSuppressed
	Rule        string           `json:"rule,omitempty"`         // of recipientDenied
	Challenge   *challenge.Offer `json:"challenge,omitempty"`
	ID          string           `json:"id,omitempty"` // of what was charged
}

// fieldProblem is what is wrong with one field: a word for programs, a sentence for people.
type fieldProblem struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

func (p *problem) Error() string { return p.kind.title }
func (p *problem) Unwrap() error { return p.cause }

// problemOf maps an error to its problem. Any other error is an internal one.
func problemOf(err error) *problem {
	if known, ok := errors.AsType[*problem](err); ok {
		return known
	}
	if known, ok := errors.AsType[*fiber.Error](err); ok && unrouted[known.Code] != nil {
		return &problem{kind: unrouted[known.Code]}
	}
	if refused, ok := errors.AsType[address.Reason](err); ok {
		return &problem{kind: invalid, members: members{Errors: []fieldProblem{addressProblem("email", refused)}}}
	}
	if errors.Is(err, throttle.ErrUnavailable) {
		return &problem{kind: storeUnavailable, retryAfter: soon, cause: err}
	}
	return &problem{kind: internal, cause: err}
}

// unrouted are the answers to requests that do not reach a route, by their status.
var unrouted = map[int]*kind{
	400: badRequest, 404: notFound, 405: methodNotAllowed, 408: requestTimeout, 413: bodyTooLarge, 431: headerTooLarge, 501: methodUnknown,
}

// explain maps an error to its problem, with this detail if the storage failed.
func explain(err error, unavailable string) error {
	p := problemOf(err)
	if p.kind == storeUnavailable {
		p.detail = unavailable
	}
	return p
}

func addressProblem(field string, err address.Reason) fieldProblem {
	return fieldProblem{field, string(err), sentence(err.Error())}
}

// unknown returns the problem of a name that is none of these.
func unknown(kind *kind, thing string, known []string) *problem {
	if len(known) == 0 {
		return &problem{kind: kind, detail: "No " + thing + " is set."}
	}
	return &problem{kind: kind, detail: "No " + thing + " has this name. Known: " + strings.Join(known, ", ") + "."}
}

// sentence adds the capital and the full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// fail writes the answer to an error, and notes it for the log. It is Fiber's ErrorHandler.
func (s *Server) fail(c *fiber.Ctx, err error) error {
	r, p := requestOf(c), problemOf(err)
	if p.kind == methodNotAllowed {
		p.detail = "Use " + strings.ReplaceAll(c.GetRespHeader(fiber.HeaderAllow), ", ", " or ") + " for this path." // those that the router has found
		c.Append(fiber.HeaderAllow, fiber.MethodOptions)
		if c.Method() == fiber.MethodOptions {
			c.Status(fiber.StatusNoContent)
			return nil
		}
	}
	r.note(p)
	c.Status(p.kind.status)
	if p.kind == unauthorized {
		set(c, "WWW-Authenticate", "Bearer")
	}
	if p.retryAfter > 0 {
		set(c, "Retry-After", strconv.FormatInt(wire.Seconds(p.retryAfter), 10))
	}
	if p.report != nil {
		showLimits(c, p.report)
	}
	r.text = p.append(r.text[:0])
	c.Response().Header.SetContentType(wire.ProblemType)
	c.Response().SetBody(r.text)
	return nil
}

// note notes a problem for the log. Mistakes of callers are routine.
func (r *request) note(p *problem) {
	r.Problem, r.Level, r.Cause = p.kind.name, slog.LevelInfo, p.cause
	switch {
	case p.kind == internal:
		r.Level = slog.LevelError
	case p.kind != methodUnknown && p.kind.status >= 500:
		r.Level = slog.LevelWarn
	}
}

// denied returns the problem of a refusal.
func denied(rep *report.Report) *problem {
	return &problem{kind: quotaExceeded, retryAfter: rep.RetryAfter(), report: rep}
}

// append appends the problem as application/problem+json (RFC 9457).
func (p *problem) append(to []byte) []byte {
	if p.kind == quotaExceeded {
		return p.report.Refusal(to)
	}
	b := wire.Object(to)
	b.Problem(wire.Ours+p.kind.name, p.kind.title, p.kind.status, cmp.Or(p.detail, p.kind.detail))
	b.Members(p.members)
	if p.report != nil {
		p.report.AppendTo(&b)
	}
	return b.End()
}

// problemIn returns the name of the problem in a body, or "".
func problemIn(body []byte) string {
	rest, ours := bytes.CutPrefix(body, []byte(`{"type":"`+wire.Ours))
	if !ours {
		return ""
	}
	name, _, _ := bytes.Cut(rest, []byte{'"'})
	return string(name)
}
