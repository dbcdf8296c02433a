package api

import (
	"context"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// A ruleRequest asks what a rule has counted for a subject, or to forget it.
type ruleRequest struct {
	name    string
	limiter throttle.Limiter
	key     string // what the subject is counted by
	reason  string // of a reset
}

func (s *Server) readRule(in *incoming) (ruleRequest, error) { return s.readRuleWith(in, nil) }

func (s *Server) readRuleReset(in *incoming) (ruleRequest, error) {
	var reason text
	q, err := s.readRuleWith(in, &reason)
	q.reason = reason.value
	return q, err
}

// readRuleWith reads the rule of the path, the subject, and the reason where there may be one.
func (s *Server) readRuleWith(in *incoming, reason *text) (q ruleRequest, err error) {
	rule, known := in.live.Rules.Rule(string(in.parameter))
	if !known {
		return q, &problem{kind: unknownRule}
	}
	if rule.By == rules.ByMailbox {
		return q, &problem{kind: invalid, fields: []fieldProblem{{"rule", "invalid", countedByMailbox}}}
	}
	var subject text
	fields := []field{{name: "subject", text: &subject}}
	if reason != nil {
		fields = append(fields, field{name: "reason", text: reason})
	}
	if err := readBody(in, fields); err != nil {
		return q, err
	}
	send, wrong := s.sendOf(in.live, rule.By, subject)
	if reason != nil {
		wrong = append(wrong, reasonProblems(*reason)...)
	}
	if wrong != nil {
		return q, &problem{kind: invalid, fields: wrong}
	}
	return ruleRequest{name: rule.Name, limiter: rule.Limiter, key: rule.By.Key(send)}, nil
}

const countedByMailbox = "Rules that count by mailbox are seen and reset together, by the address: GET /admin/mailboxes/{email} and POST /admin/mailboxes/{email}/reset."

// sendOf is a send of which nothing is known but the subject that a rule counts it by. The
// subject is read as that of a send is, so that it is counted as the same.
func (s *Server) sendOf(live *Live, by rules.By, subject text) (send rules.Send, wrong []fieldProblem) {
	refuse := func(reason, detail string) (rules.Send, []fieldProblem) {
		return rules.Send{}, []fieldProblem{{"subject", reason, detail}}
	}
	if by == rules.ByAll {
		if subject.given {
			return refuse("invalid", "This rule counts all sends as one: leave subject out.")
		}
		return send, nil
	}
	if wrong := subjectProblems(subject); wrong != nil {
		return send, wrong
	}
	switch by {
	case rules.ByClientIP:
		client, err := clientOf(subject.value)
		if err != nil {
			return refuse("invalid", "subject must be an IPv4 or IPv6 address.")
		}
		send.Client = client
	case rules.ByDomain:
		somebody, err := address.Parse("x@"+subject.value, s.with.Identity)
		if err != nil {
			return refuse("invalid", "subject must be a domain, such as example.com.")
		}
		send.Domain = somebody.Domain()
	case rules.ByAPIKey:
		if !s.isCaller(subject.value) {
			return refuse("unknown", "subject must be the name of an API key.")
		}
		send.Caller = subject.value
	case rules.ByTemplate:
		if named(s.mailProblems(live.Composer, sendRequest{mail: message.Request{Template: subject.value}}), "template") {
			return refuse("unknown", "subject must be the name of a template.")
		}
		send.Template = subject.value
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

// ruleSight is the quota of a subject by one rule.
type ruleSight struct {
	quota
	subject string // as the log calls it
}

// peekRule says what the rule alone would say of the subject's next send.
func (s *Server) peekRule(ctx context.Context, c *call, q ruleRequest) (ruleSight, error) {
	c.rule, c.subject = q.name, s.names.subject(q.key)
	v, err := q.limiter.Peek(ctx, q.key)
	if err != nil {
		return ruleSight{}, err
	}
	c.limit, c.degraded = v.Limit, v.Degraded
	return ruleSight{quotaOfOne(q.name, c.subject, v), c.subject}, nil
}

func writeRuleSight(out *answer, done *ruleSight) {
	out.show(&done.quota)
	out.encode(struct {
		Allowed bool   `json:"allowed"`
		Subject string `json:"subject"`
		wire.Verdict
	}{done.decision.Allowed, done.subject, out.told(&done.quota)})
}

// resetRule forgets what the rule has counted for the subject, and writes who did it and why.
func (s *Server) resetRule(ctx context.Context, c *call, q ruleRequest) (clearing, error) {
	c.rule, c.subject = q.name, s.names.subject(q.key)
	return s.forget(ctx, c, clearing{Rule: q.name}, q.limiter, q.key, q.reason)
}
