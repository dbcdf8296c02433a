package api

import (
	"maps"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle/rules"
)

// ruleBody is the body of the routes about a rule. A rule that counts all sends has no subject.
type ruleBody struct {
	Subject *string `json:"subject" validate:"omitnil,min=1,bytes=256,opaque"`

	key  string // under which the rule counts the subject
	send rules.Send
}

type ruleResetBody struct {
	ruleBody
	Reason string `json:"reason" validate:"max=500"`
}

type ruleAnswer struct {
	Allowed bool          `json:"allowed"`
	Subject string        `json:"subject"` // its hash, as in the log
	Cases   []rules.Match `json:"cases"`
}

type ruleResetAnswer struct {
	Rule    string        `json:"rule"`
	Subject string        `json:"subject"`
	Cleared int           `json:"cleared"`
	Cases   []rules.Match `json:"cases"`
}

// readRule finds the rule in the path.
func readRule(r *request) error {
	rule, known := r.live.Rules.Rule(r.c.Params("rule"))
	if !known {
		p := unknown(unknownRule, "rule", r.live.Rules.Names())
		p.detail += " A denial or a built-in limit cannot be looked up: GET /admin/mailboxes/{email} (mailgate show EMAIL) says what denies a mailbox, and the guesses left."
		return p
	}
	if rule.By == rules.ByMailbox {
		return invalidFields(fieldProblem{"rule", "invalid", "Rules that count by mailbox are seen and reset together, " +
			"by the address: GET /admin/mailboxes/{email} and POST /admin/mailboxes/{email}/reset."})
	}
	r.counted = rule
	return nil
}

// check reads the subject as it is in a send, so that both have the same key.
func (b *ruleBody) check(s *Server, r *request, wrong []fieldProblem) []fieldProblem {
	by, refuse := r.counted.By, func(reason, detail string) []fieldProblem {
		return append(wrong, fieldProblem{"subject", reason, detail})
	}
	var send rules.Send
	switch how := by.Subject(); {
	case hasField(wrong, "subject"):
		return wrong
	case how == "" && b.Subject != nil:
		return refuse("invalid", "This rule counts all sends as one: leave subject out.")
	case how != "" && b.Subject == nil:
		return refuse("missing", "subject is missing.")
	case how != "":
		var ok bool
		if send, ok = by.Read(*b.Subject, s.with.Identity); !ok {
			return refuse("invalid", "subject must be "+how+".")
		}
		for i, one := range by.Traits() {
			known := map[rules.By][]string{rules.ByAPIKey: s.callerNames(), rules.ByTemplate: r.live.Composer.Templates()}[one]
			if known != nil && !slices.Contains(known, strings.Split(*b.Subject, " ")[i]) {
				return refuse("unknown", "subject must be "+how+": "+strings.Join(known, ", ")+".")
			}
		}
	}
	b.key, b.send = by.Key(send), send
	r.Subject = s.names.subject(b.key)
	return wrong
}

// peekRule answers as the rule alone would answer the subject's next send.
func (s *Server) peekRule(r *request, body *ruleBody) (any, error) {
	v, err := r.counted.Peek(r.ctx, body.send)
	if err != nil {
		return nil, err
	}
	return reported{ruleAnswer{v.Allowed, r.Subject, r.counted.Matches(body.send)}, r.reports(report.OfOne(r.counted.Name, "", r.Subject, &v))}, nil
}

// resetRule clears what the rule has counted for the subject.
func (s *Server) resetRule(r *request, body *ruleResetBody) (any, error) {
	cleared, err := r.counted.Limiter.Reset(r.ctx, body.key)
	r.Reason, r.Cleared = body.Reason, []ledger.Cleared{{Name: "cleared", Count: cleared}}
	return &ruleResetAnswer{r.counted.Name, r.Subject, cleared, r.counted.Matches(body.send)}, s.audit(r, ledger.RuleReset, err)
}

// callerNames are the names that callers of sends can have.
func (s *Server) callerNames() []string {
	if s.with.Access.APIKeys.IsZero() {
		return []string{rules.Caller("")}
	}
	return slices.Sorted(maps.Keys(s.callers))
}
