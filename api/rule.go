package api

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle/rules"
)

// ruleBody is the body of the routes about a rule. A rule that counts all sends has no subject.
type ruleBody struct {
	Subject *string `json:"subject" validate:"omitnil,min=1,bytes=256,printable"`
}

func (b ruleBody) subject() *string { return b.Subject }

type ruleResetBody struct {
	ruleBody
	Reason string `json:"reason" validate:"max=500"`
}

type ruleAnswer struct {
	Allowed bool   `json:"allowed"`
	Subject string `json:"subject"` // its hash, as in the log
}

// readRule reads a request about a rule and a subject, and returns the key under which the rule
// counts the subject. It notes both for the log.
func readRule[B interface{ subject() *string }](s *Server, c *fiber.Ctx) (rule rules.Rule, key string, body B, err error) {
	r := requestOf(c)
	rule, known := r.live.Rules.Rule(c.Params("rule"))
	if !known {
		return rule, "", body, unknown(unknownRule, "rule", r.live.Rules.Names())
	}
	if rule.By == rules.ByMailbox {
		return rule, "", body, invalidField("rule", "invalid", "Rules that count by mailbox are seen and reset together, "+
			"by the address: GET /admin/mailboxes/{email} and POST /admin/mailboxes/{email}/reset.")
	}
	r.rule = rule.Name
	if err := readBody(c, &body); err != nil {
		return rule, "", body, err
	}
	wrong := s.check(r, &body)
	send, refused := s.sendBy(r.live, rule.By, body.subject())
	if refused != nil && !hasField(wrong, "subject") {
		wrong = append(wrong, *refused)
	}
	if len(wrong) > 0 {
		return rule, "", body, invalidFields(wrong)
	}
	key = rule.By.Key(send)
	r.subject = s.names.subject(key)
	return rule, key, body, nil
}

// peekRule answers as the rule alone would answer the subject's next send.
func (s *Server) peekRule(c *fiber.Ctx) error {
	r := requestOf(c)
	rule, key, _, err := readRule[ruleBody](s, c)
	if err != nil {
		return err
	}
	v, err := rule.Limiter.Peek(r.ctx, key)
	if err != nil {
		return err
	}
	return respondWith(c, ruleAnswer{v.Allowed, r.subject}, r.told(report.OfOne(rule.Name, "", r.subject, &v)))
}

// resetRule clears what the rule has counted for the subject.
func (s *Server) resetRule(c *fiber.Ctx) error {
	rule, key, body, err := readRule[ruleResetBody](s, c)
	if err != nil {
		return err
	}
	return s.clear(c, "rule", rule.Name, rule.Limiter, key, body.Reason, &resetAnswer{Rule: rule.Name})
}

// sendBy returns a send with nothing but the subject that a rule counts by, or what is wrong with the subject. It is read as
// it is in a send, so that both have the same key.
func (s *Server) sendBy(live *Live, by rules.By, subject *string) (send rules.Send, wrong *fieldProblem) {
	refuse := func(reason, detail string) (rules.Send, *fieldProblem) {
		return rules.Send{}, &fieldProblem{"subject", reason, detail}
	}
	if by == rules.ByAll {
		if subject != nil {
			return refuse("invalid", "This rule counts all sends as one: leave subject out.")
		}
		return send, nil
	}
	if subject == nil {
		return refuse("missing", "subject is missing.")
	}
	switch by {
	case rules.ByClientIP:
		if s.validate.Var(*subject, "ip") != nil {
			return refuse("invalid", "subject must be an IPv4 or IPv6 address.")
		}
		send.Client = netip.MustParseAddr(*subject)
	case rules.ByDomain:
		mailbox, err := address.Parse("x@"+*subject, s.with.Identity)
		if err != nil {
			return refuse("invalid", "subject must be a domain, such as example.com.")
		}
		send.Domain = mailbox.Domain()
	case rules.ByAPIKey:
		if !slices.Contains(s.callerNames(), *subject) {
			return refuse("unknown", "subject must be the name of an API key: "+strings.Join(s.callerNames(), ", ")+".")
		}
		send.Caller = *subject
	case rules.ByTemplate:
		if !slices.Contains(live.Composer.Templates(), *subject) {
			return refuse("unknown", "subject must be the name of a template: "+strings.Join(live.Composer.Templates(), ", ")+".")
		}
		send.Template = *subject
	}
	return send, nil
}

// callerNames are the names that callers of sends can have.
func (s *Server) callerNames() []string {
	if s.with.APIKeys.IsZero() {
		return []string{noCaller}
	}
	return slices.Sorted(maps.Keys(s.callers))
}
