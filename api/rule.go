package api

import (
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle/rules"
)

type ruleBody struct {
	Subject *string `json:"subject" validate:"omitnil,min=1,bytes=256,printable"`
}

type ruleResetBody struct {
	Subject *string `json:"subject" validate:"omitnil,min=1,bytes=256,printable"`
	Reason  string  `json:"reason" validate:"max=500"`
}

type ruleAnswer struct {
	Allowed bool   `json:"allowed"`
	Subject string `json:"subject"` // as the log calls it
	wire.Verdict
}

// peekRule says what the rule alone would answer to the subject's next send.
func (s *Server) peekRule(c *fiber.Ctx) error {
	r := requestOf(c)
	rule, err := ruleOf(c)
	if err != nil {
		return err
	}
	var body ruleBody
	if err := readBody(c, &body); err != nil {
		return err
	}
	key, err := s.ruleKey(r, rule, body.Subject, s.check(r, &body))
	if err != nil {
		return err
	}
	v, err := rule.Limiter.Peek(r.ctx, key)
	if err != nil {
		return err
	}
	q := quotaOfOne(rule.Name, r.subject, v)
	answer := ruleAnswer{v.Allowed, r.subject, q.tell(c)}
	r.rule = rule.Name // also where its quota is not used up
	return respond(c, answer)
}

// resetRule forgets what the rule has counted for the subject.
func (s *Server) resetRule(c *fiber.Ctx) error {
	r := requestOf(c)
	rule, err := ruleOf(c)
	if err != nil {
		return err
	}
	var body ruleResetBody
	if err := readBody(c, &body); err != nil {
		return err
	}
	key, err := s.ruleKey(r, rule, body.Subject, s.check(r, &body))
	if err != nil {
		return err
	}
	return s.forget(c, "rule", rule.Name, rule.Limiter, key, body.Reason)
}

// ruleOf is the rule in the path, of those that count by a subject.
func ruleOf(c *fiber.Ctx) (rules.Rule, error) {
	rule, known := requestOf(c).live.Rules.Rule(c.Params("rule"))
	if !known {
		return rule, &problem{kind: unknownRule}
	}
	if rule.By == rules.ByMailbox {
		return rule, invalidFields([]fieldProblem{{"rule", "invalid", "Rules that count by mailbox are seen and reset together, " +
			"by the address: GET /admin/mailboxes/{email} and POST /admin/mailboxes/{email}/reset."}})
	}
	return rule, nil
}

// ruleKey is the key that the rule counts a subject by, which it notes for the log. What is wrong
// with the body so far is refused together with the subject.
func (s *Server) ruleKey(r *request, rule rules.Rule, subject *string, wrong []fieldProblem) (string, error) {
	r.rule = rule.Name
	var send rules.Send
	if !hasField(wrong, "subject") {
		var bad *fieldProblem
		if send, bad = s.sendBy(r.live, rule.By, subject); bad != nil {
			wrong = append(wrong, *bad)
		}
	}
	if len(wrong) > 0 {
		return "", invalidFields(wrong)
	}
	key := rule.By.Key(send)
	r.subject = s.names.subject(key)
	return key, nil
}

// sendBy is a send of which only the subject is known that a rule counts it by. The subject is
// read as that of a send is, so that it is counted as the same.
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
		client, err := clientOf(*subject)
		if err != nil {
			return refuse("invalid", "subject must be an IPv4 or IPv6 address.")
		}
		send.Client = client
	case rules.ByDomain:
		mailbox, err := address.Parse("x@"+*subject, s.with.Identity)
		if err != nil {
			return refuse("invalid", "subject must be a domain, such as example.com.")
		}
		send.Domain = mailbox.Domain()
	case rules.ByAPIKey:
		if !s.isCaller(*subject) {
			return refuse("unknown", "subject must be the name of an API key.")
		}
		send.Caller = *subject
	case rules.ByTemplate:
		if !live.hasTemplate(*subject) {
			return refuse("unknown", "subject must be the name of a template.")
		}
		send.Template = *subject
	}
	return send, nil
}

// isCaller reports whether sends can be counted as those of a caller of this name.
func (s *Server) isCaller(name string) bool {
	if s.with.APIKeys.IsZero() {
		return name == noCaller
	}
	return s.callers[name] != nil
}

func (l *Live) hasTemplate(name string) bool {
	wrong := checkMail(l.Composer, message.Request{To: checkTo, ID: checkID, Code: checkCode, Template: name})
	return !hasField(wrong, "template")
}
