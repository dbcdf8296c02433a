package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// MailboxRule is the name of the rule that protects the recipient. Every Set has it.
const MailboxRule = "mailbox"

// TokenRule is the name under which a Set charges a token of a solved challenge. No rule has it.
const TokenRule = "challenge"

// Rule counts sends by one trait and refuses those beyond its limit.
type Rule struct {
	Name    string
	By      By
	Limiter *throttle.Limiter
	// Resends decides about emails to a mailbox that had one inside MailboxRule's longest window when it was looked at, on
	// the records of Limiter. A stricter limit here keeps the rest of the quota for first emails. Nil leaves resends to
	// Limiter.
	Resends throttle.Algorithm
	// Shadow lets the rule count and report, and refuse nothing. It is not charged for
	// what it would have refused.
	Shadow bool
	// Challenge has the rule refuse only sends without a solved challenge. One with a solved challenge is
	// charged while the rule has quota left.
	Challenge bool
	Only      Some // that the rule counts; none stands for all
	Cases     []Case
	// Budget makes the rule count a send only until its code is right. Nil counts every send.
	Budget *Budget

	only, cases, shadows *index
	stage                int
}

// Set is a set of rules that all have to admit a send. Its rules never change, and it may be shared.
type Set struct {
	rules   []Rule
	denies  *index
	shadows []*index // each of a denial in shadow
	token   *Rule    // spends the tokens of solved challenges; nil if no challenge can be solved
	remote  bool
	full    full
}

// Options say how a Set asks its rules.
type Options struct {
	// Remote is for limiters across a network: all are asked at the same time, so that ten
	// take as long as one.
	Remote bool
	// Denials are sends that are refused, whatever the limits say.
	Denials []Case
	// Tokens admits each token of a solved challenge once. It keeps ids. Nil has no challenge count as solved.
	Tokens *throttle.Limiter
}

// New returns the Set of rules of different names. One of them is MailboxRule: it counts by mailbox,
// and its limiter keeps histories.
func New(o Options, all ...Rule) (*Set, error) {
	s := &Set{rules: slices.Clone(all), remote: o.Remote, full: newFull()}
	denials := slices.Clone(o.Denials)
	var err error
	s.denies, err = newIndex(denials, false)
	for i := range denials {
		x, wrong := newIndex(denials[i:i+1], true)
		s.shadows, err = append(s.shadows, x), cmp.Or(err, wrong)
	}
	if o.Tokens != nil {
		s.token = &Rule{Name: TokenRule, Limiter: o.Tokens, Challenge: true}
	}
	protected := false
	for i := range s.rules {
		r := &s.rules[i]
		err = cmp.Or(err, r.prepare())
		protected = protected || r.Name == MailboxRule && r.exact() && r.By == ByMailbox
	}
	if err != nil {
		return nil, err
	}
	if !protected {
		return nil, errors.New("there is no rule mailbox that counts by mailbox and keeps every send")
	}
	slices.SortStableFunc(s.rules, func(a, b Rule) int { return a.stage - b.stage })
	return s, nil
}

// Mailbox returns the limiter of MailboxRule that decides about a send.
func (s *Set) Mailbox(send Send) *throttle.Limiter {
	r, _ := s.Rule(MailboxRule)
	return r.limiterFor(send)
}

// Rule finds a rule by its name.
func (s *Set) Rule(name string) (r Rule, found bool) {
	i := slices.IndexFunc(s.rules, func(r Rule) bool { return r.Name == name })
	if i < 0 {
		return r, false
	}
	return s.rules[i], true
}

// charged finds what a charge is of.
func (s *Set) charged(name string) (r Rule, found bool) {
	if name == TokenRule && s.token != nil {
		return *s.token, true
	}
	return s.Rule(name)
}

// Names returns the names of all rules, sorted.
func (s *Set) Names() []string {
	names := make([]string, len(s.rules))
	for i, r := range s.rules {
		names[i] = r.Name
	}
	slices.Sort(names)
	return names
}

// CountsBy reports whether a rule counts the send by that trait.
func (s *Set) CountsBy(by By, send Send) bool {
	return slices.ContainsFunc(s.rules, func(r Rule) bool {
		key, _ := r.meet(send)
		return r.By.Has(by) && key != ""
	})
}

// Challenges reports whether a solved challenge can make a difference.
func (s *Set) Challenges() bool {
	return s.token != nil && slices.ContainsFunc(s.rules, func(r Rule) bool { return r.Challenge })
}

// Take charges every rule that applies. If one refuses, the others are refunded. Where a rule may be expected to
// refuse, all are asked before they are charged.
//
// A send that is denied is not asked about. One whose token is spent is decided as one without. The id must be new:
// a repeated Take could be refused because of the first, so release the
// charges of the first before. With an error the Decision has nothing but the Charges that are
// still to be released.
func (s *Set) Take(ctx context.Context, send Send, id throttle.ID) (Decision, error) {
	if err := check("take", send.Mailbox); err != nil {
		return Decision{}, err
	}
	if c, _ := s.denies.find(send); c != nil {
		return Decision{Denied: c.Name}, nil
	}
	d, err := s.take(ctx, send, id)
	spent := slices.ContainsFunc(d.Refusals, func(r Refusal) bool { return r.Rule == TokenRule })
	if err == nil && spent && len(d.Charges) == 0 {
		send.Solved = ""
		d, err = s.take(ctx, send, id)
	}
	return d, err
}

func (s *Set) take(ctx context.Context, send Send, id throttle.ID) (Decision, error) {
	round := s.questions(send)
	if s.looksFirst(round) {
		if d, err := s.look(ctx, round); err != nil || !d.Allowed {
			return d, err
		}
	}
	err := s.charge(ctx, round, id)
	all := charges(round, id)
	if err != nil {
		return Decision{Charges: all}, err
	}
	s.full.note(round)
	var lost error
	if !refused(round) {
		nextAsResend(round, id)
	} else if all, lost, err = s.refund(ctx, round, all); err != nil {
		return Decision{Charges: all}, err
	}
	d := decide(round)
	d.Charges, d.Lost = all, lost
	if !d.Allowed {
		return d, nil
	}
	for _, x := range s.shadows {
		if c, _ := x.find(send); c != nil {
			d.Shadow = append(d.Shadow, Refusal{Rule: c.Name, Verdict: throttle.Verdict{Limit: shadowLimit}})
		}
	}
	return d, nil
}

// Peek reports what Take would answer without a solved challenge, and charges nothing. Of a send that is denied it
// also reports the limits.
func (s *Set) Peek(ctx context.Context, send Send) (Decision, error) {
	if err := check("peek", send.Mailbox); err != nil {
		return Decision{}, err
	}
	send.Solved = ""
	d, err := s.look(ctx, s.questions(send))
	if c, _ := s.denies.find(send); c != nil {
		d.Denied, d.Allowed = c.Name, false
	}
	return d, err
}

// Release refunds charges because the email certainly never left. It returns those that failed and
// may be refunded again. A counter's is not among them: refunded twice, it would refund another send.
func (s *Set) Release(ctx context.Context, all []Charge) (failed []Charge, err error) {
	failed, err, lost := s.release(ctx, all)
	return failed, errors.Join(err, lost)
}

// release is Release with the errors of counters apart.
func (s *Set) release(ctx context.Context, all []Charge) (failed []Charge, err, lost error) {
	errs := make([]error, len(all))
	s.each(len(all), func(i int) {
		if r, found := s.charged(all[i].Rule); found {
			_, failure := cmp.Or(all[i].limiter, r.Limiter).Release(ctx, all[i].Key, all[i].Admission)
			errs[i] = r.wrap(failure)
		}
	})
	for i, c := range all {
		if r, _ := s.charged(c.Rule); errs[i] != nil && r.exact() {
			failed, err = append(failed, c), errors.Join(err, errs[i])
		} else {
			lost = errors.Join(lost, errs[i])
		}
	}
	return failed, err, lost
}

// ExactCharges returns what the exact rules may have charged the send under an id, by an
// attempt whose decision is lost.
func (s *Set) ExactCharges(send Send, id throttle.ID) (all []Charge) {
	for _, q := range s.questions(send) {
		if q.rule.exact() && !q.trial {
			all = append(all, Charge{q.rule.Name, q.rule.By, q.key, throttle.Admission{ID: id}, q.limiter})
		}
	}
	return all
}

// Reset forgets the mailbox in every rule that counts by it, even if another of them fails, and
// reports how many sends MailboxRule forgot.
func (s *Set) Reset(ctx context.Context, mailbox string) (cleared int, err error) {
	if err := check("reset", mailbox); err != nil {
		return 0, err
	}
	for _, r := range s.rules {
		if r.By != ByMailbox {
			continue
		}
		n, failure := r.Limiter.Reset(ctx, mailbox)
		err = errors.Join(err, r.wrap(failure))
		if r.Name == MailboxRule {
			cleared = n
		}
	}
	return cleared, err
}

// Table names where the records of the rule are. It has the "by" and what is counted, so that a rule which changes that
// starts from zero.
func (r *Rule) Table() string {
	table := "rule-" + r.Name + "-" + string(r.By)
	if r.Budget != nil {
		table += "-unverified"
	}
	return table
}

// exact reports whether the rule finds a send by its id.
func (r *Rule) exact() bool { return r.Limiter.Algorithm.Exact() }

// wrap names the rule in its error.
func (r *Rule) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rule %s: %w", r.Name, err)
}

// check refuses a send without a mailbox, which MailboxRule could not count.
func check(doing, mailbox string) error {
	if err := throttle.CheckKey(mailbox); err != nil {
		return fmt.Errorf("%s: the mailbox: %w", doing, err)
	}
	return nil
}
