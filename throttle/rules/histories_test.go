package rules_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What sends of these histories have, by trait, and the names that their cases have.
var (
	traitsOf = map[rules.By][]string{
		rules.ByMailbox:  {"a@d.example", "ab@d.example", "a@s.d.example", "ab@t.s.d.example", "a@e.example"},
		rules.ByClientIP: {"10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2", "10.0.1.1", "10.1.0.1", "2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:2::1", ""},
		rules.ByAPIKey:   {"web", "app"}, rules.ByTemplate: {"code", "welcome"}, rules.ByPurpose: {"login", "reset", ""},
	}
	namesOf = map[rules.By][]string{
		rules.ByMailbox:  {"a@d.example", "ab@t.s.d.example", "a@e.example", "a*@d.example", "*b@d.example", "*@s.d.example", "@d.example", "@s.d.example", "@e.example"},
		rules.ByDomain:   {"example", "d.example", "s.d.example", "t.s.d.example", "e.example"},
		rules.ByClientIP: {"10.0.0.1/32", "10.0.0.0/24", "10.0.0.0/16", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "2001:db8:0:1::/64", "::/0"},
		rules.ByAPIKey:   {"web", "app"}, rules.ByTemplate: {"code", "welcome"}, rules.ByPurpose: {"login", "reset"},
	}
)

const shortWindow, longWindow = 50, 200 // milliseconds

// limits are how many sends a rule admits in each window.
type limits struct{ short, long int }

func (l limits) policy(t testing.TB) throttle.Algorithm {
	return throttletest.Policy(t, fmt.Sprintf("short=%d/%dms,long=%d/%dms", l.short, shortWindow, l.long, longWindow))
}

// modelCase and modelRule are what a set is made of, for a model that is too naive to be wrong.
type modelCase struct {
	some   rules.Some
	limits *limits // nil exempts, or denies
	shadow bool
}

type modelRule struct {
	name              string
	by                rules.By
	limits            limits
	shadow, challenge bool
	only              rules.Some
	cases             []modelCase
}

// modelSend is one send on record of a rule.
type modelSend struct {
	rule, key string
	at        int64
	id        throttle.ID
}

// exactness is how exactly a name is that of a send, 0 if it is not.
func exactness(by rules.By, name string, s rules.Send) int {
	local, domain, _ := strings.Cut(s.Mailbox, "@")
	switch by {
	case rules.ByMailbox:
		pattern, of, _ := strings.Cut(name, "@")
		switch {
		case name == s.Mailbox:
			return 9000
		case of != domain:
			return 0
		case pattern == "":
			return 7000
		case strings.Contains(pattern, "*") && regexp.MustCompile("^"+strings.ReplaceAll(pattern, "*", ".*")+"$").MatchString(local):
			return 8000
		}
	case rules.ByDomain:
		if domain == name || strings.HasSuffix(domain, "."+name) {
			return 6000 + len(name)
		}
	case rules.ByClientIP:
		if p := netip.MustParsePrefix(name); p.Contains(s.Client.Unmap()) {
			return 5000 + p.Bits()
		}
	case rules.ByAPIKey:
		if name == s.Caller {
			return 4000
		}
	case rules.ByTemplate:
		if name == s.Template {
			return 3000
		}
	case rules.ByPurpose:
		if name == s.Purpose {
			return 2000
		}
	}
	return 0
}

// best returns the case with the most exact name of a send, the first of equal ones; -1 if there is none.
func best(cases []modelCase, s rules.Send, shadow bool) (at int) {
	at, most := -1, 0
	for i, c := range cases {
		for by, names := range c.some {
			for _, name := range names {
				if n := exactness(by, name.Text, s); c.shadow == shadow && n > most {
					at, most = i, n
				}
			}
		}
	}
	return at
}

// keyOf is what a rule of the model counts a send by, empty if it does not apply.
func keyOf(by rules.By, s rules.Send) (key string) {
	for _, one := range by.Traits() {
		labels := strings.Split(s.Mailbox[strings.IndexByte(s.Mailbox, '@')+1:], ".")
		part := map[rules.By]string{rules.ByMailbox: s.Mailbox, rules.ByAPIKey: s.Caller, rules.ByTemplate: s.Template, rules.ByPurpose: s.Purpose, rules.ByAll: "all",
			rules.ByDomain: strings.Join(labels[len(labels)-2:], ".")}[one]
		if one == rules.ByClientIP && s.Client.IsValid() {
			part = s.Client.Unmap().String()
			if s.Client.Unmap().Is6() {
				part = netip.PrefixFrom(s.Client, 64).Masked().String()
			}
		}
		if part == "" {
			return ""
		}
		key += "/" + part
	}
	return key
}

// meets says what a rule of the model does about a send: the limits that decide, and those of a shadow case.
func (m modelRule) meets(s rules.Send) (applies bool, in limits, trial *limits) {
	if !m.only.None() && best([]modelCase{{some: m.only}}, s, false) < 0 {
		return false, in, nil
	}
	in = m.limits
	if i := best(m.cases, s, false); i >= 0 {
		if m.cases[i].limits == nil {
			return false, in, nil
		}
		in = *m.cases[i].limits
	}
	if i := best(m.cases, s, true); i >= 0 {
		trial = m.cases[i].limits
	}
	return keyOf(m.by, s) != "", in, trial
}

// waitBy is how many milliseconds after now the next send of a key is admitted.
func waitBy(l limits, record []modelSend, rule, key string, now int64) (wait int64) {
	full := func(at int64) bool {
		short, long := 0, 0
		for _, s := range record {
			if s.rule == rule && s.key == key && at-s.at < longWindow {
				long++
				if at-s.at < shortWindow {
					short++
				}
			}
		}
		return short >= l.short || long >= l.long
	}
	for full(now + wait) {
		wait++
	}
	return wait
}

func randomLimits(random *rand.Rand) (l limits) {
	l.short = 1 + random.IntN(4)
	l.long = l.short + 1 + random.IntN(2*l.short) // not so many that the short one admits no more
	return l
}

// randomSome is for one to three names of these traits.
func randomSome(random *rand.Rand, of ...rules.By) rules.Some {
	some := rules.Some{}
	for range 1 + random.IntN(3) {
		by := of[random.IntN(len(of))]
		name := namesOf[by][random.IntN(len(namesOf[by]))]
		some[by] = append(some[by], rules.Name{Text: name})
	}
	return some
}

// randomCases are exempt, or have other limits where what is counted by allows that.
func randomCases(random *rand.Rand, by rules.By) (all []modelCase) {
	for range random.IntN(6) {
		c := modelCase{shadow: random.IntN(4) == 0}
		c.some = randomSome(random, rules.ByMailbox, rules.ByDomain, rules.ByClientIP, rules.ByAPIKey, rules.ByTemplate, rules.ByPurpose)
		if random.IntN(4) > 0 && by != rules.ByAll {
			of := by.Traits()
			if by == rules.ByMailbox {
				of = append(of, rules.ByDomain)
			}
			l := randomLimits(random)
			if some := randomSome(random, of...); by.CheckLimit(some) == nil {
				c.some, c.limits = some, &l
			}
		}
		all = append(all, c)
	}
	return all
}

// randomRules are rules by all traits, one of them by two, with cases.
func randomRules(random *rand.Rand) (all []modelRule, denials []modelCase) {
	pair, _ := rules.Pair(rules.ByClientIP, rules.ByAPIKey)
	for _, by := range []rules.By{rules.ByAll, rules.ByAPIKey, rules.ByDomain, rules.ByMailbox, pair, rules.ByPurpose, rules.ByClientIP} {
		name := strings.ReplaceAll(string(by), "+", "-")
		m := modelRule{name: name, by: by, limits: randomLimits(random), shadow: random.IntN(5) == 0, challenge: random.IntN(5) == 0, cases: randomCases(random, by)}
		if by == rules.ByAll {
			m.limits = limits{12, 12}
		}
		if name == rules.MailboxRule {
			m.challenge = false
		} else if random.IntN(3) == 0 {
			continue
		} else if random.IntN(3) == 0 {
			m.only = randomSome(random, rules.ByPurpose, rules.ByTemplate, rules.ByMailbox, rules.ByClientIP)
		}
		all = append(all, m)
	}
	for range random.IntN(4) {
		denials = append(denials, modelCase{some: randomSome(random, rules.ByMailbox, rules.ByClientIP, rules.ByTemplate), shadow: random.IntN(3) == 0})
	}
	return all, denials
}

// of makes the set of the model's rules, over the records of the rig.
func (r *rig) of(remote bool, all []modelRule, denials []modelCase) *rules.Set {
	o := rules.Options{Remote: remote}
	for i, d := range denials {
		o.Denials = append(o.Denials, rules.Case{Name: fmt.Sprint("denial", i), Some: d.some, Shadow: d.shadow})
	}
	var made []rules.Rule
	for _, m := range all {
		a := window(r, m.limits.long, longWindow) // a counter
		if m.by != rules.ByAll {
			a = m.limits.policy(r)
		}
		rule := rules.Rule{Name: m.name, By: m.by, Limiter: local.New(r.store.Table(m.name), a), Shadow: m.shadow, Challenge: m.challenge, Only: m.only}
		for _, c := range m.cases {
			one := rules.Case{Some: c.some, Shadow: c.shadow}
			if c.limits != nil {
				one.Limit = c.limits.policy(r)
			}
			rule.Cases = append(rule.Cases, one)
		}
		made = append(made, rule)
	}
	return must.Get(rules.New(o, made...))(r)
}

// answer is what there is to say of a decision.
type answer struct {
	allowed, challenge        bool
	denied                    string
	refusals, shadow, charged []string
	wait                      int64
	sent                      int // to the mailbox, if its rule applies
}

// told is the answer of a decision.
func told(d rules.Decision) answer {
	a := answer{allowed: d.Allowed, challenge: d.Challenge, denied: d.Denied, sent: d.Mailbox.Sent, wait: d.Verdict.RetryAt - d.Verdict.Now}
	for _, x := range d.Refusals {
		a.refusals = append(a.refusals, x.Rule)
	}
	for _, x := range d.Shadow {
		a.shadow = append(a.shadow, x.Rule)
	}
	for _, x := range d.Charges {
		a.charged = append(a.charged, x.Rule)
	}
	slices.Sort(a.shadow)
	return a
}

// modelTake decides about a send by all rules, and returns what is then on record.
func modelTake(all []modelRule, denials []modelCase, record []modelSend, s rules.Send, id throttle.ID, now int64) (answer, []modelSend) {
	if i := best(denials, s, false); i >= 0 {
		return answer{denied: fmt.Sprint("denial", i)}, record
	}
	a := answer{allowed: true, challenge: true}
	var shadow, charged []string
	var charges []modelSend
	for _, m := range all {
		applies, in, trial := m.meets(s)
		if !applies {
			continue
		}
		key := keyOf(m.by, s)
		free := waitBy(in, record, m.name, key, now) == 0
		switch {
		case free:
			charged, charges = append(charged, m.name), append(charges, modelSend{m.name, key, now, id})
		case m.shadow:
			shadow = append(shadow, m.name)
		default:
			a.allowed, a.refusals, a.challenge = false, append(a.refusals, m.name), a.challenge && m.challenge
		}
		if trial != nil && waitBy(*trial, record, m.name, key, now) > 0 {
			shadow = append(shadow, m.name)
		}
	}
	if a.challenge = a.challenge && !a.allowed; a.allowed {
		record = append(slices.Clone(record), charges...)
		for i, d := range denials {
			if d.shadow && best([]modelCase{d}, s, true) >= 0 {
				shadow = append(shadow, fmt.Sprint("denial", i))
			}
		}
		slices.Sort(shadow)
		a.shadow, a.charged = shadow, charged
	}
	for _, m := range all {
		applies, in, _ := m.meets(s)
		key := keyOf(m.by, s)
		if applies && !m.shadow && m.challenge == a.challenge && (a.allowed || slices.Contains(a.refusals, m.name)) {
			a.wait = max(a.wait, waitBy(in, record, m.name, key, now))
		}
		if applies && m.name == rules.MailboxRule {
			for _, one := range record {
				if one.rule == m.name && one.key == key && now-one.at < longWindow {
					a.sent++
				}
			}
		}
	}
	return a, record
}

// Against a model that keeps every send, looks through all names of all cases for the most exact one, and counts anew:
// the same answers, waits and charges, also after refunds, resets and new rules over the same records.
func TestTake_RandomCases_AsTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 62))
		r := newRig(t)
		remote := seed%3 == 0
		all, denials := randomRules(random)
		set := r.of(remote, all, denials)
		var record []modelSend
		var sent []rules.Decision
		one := func(by rules.By) string { return traitsOf[by][random.IntN(len(traitsOf[by]))] }
		for step := range 400 {
			r.clock.Add(random.Int64N(8))
			now := r.clock.Load()
			s := rules.Send{Mailbox: one(rules.ByMailbox), Caller: one(rules.ByAPIKey), Template: one(rules.ByTemplate), Purpose: one(rules.ByPurpose)}
			s.Client, _ = netip.ParseAddr(one(rules.ByClientIP))
			switch random.IntN(40) {
			case 0:
				all, denials = randomRules(random)
				set = r.of(remote, all, denials)
				sent = nil // their rules may be gone
			case 1:
				must.Get(set.Reset(ctx, s.Mailbox))(t)
				record = slices.DeleteFunc(record, func(x modelSend) bool { return x.rule == rules.MailboxRule && x.key == "/"+s.Mailbox })
			case 2, 3, 4:
				if len(sent) == 0 {
					continue
				}
				d := sent[len(sent)-1]
				sent = sent[:len(sent)-1]
				must.Get(set.Release(ctx, d.Charges))(t)
				record = slices.DeleteFunc(record, func(x modelSend) bool { return len(d.Charges) > 0 && x.id == d.Charges[0].Admission.ID })
			default:
				id := throttle.NewID()
				var want answer
				looked := told(peek(t, set, s))
				want, record = modelTake(all, denials, record, s, id, now)
				d := answered(t)(set.Take(ctx, s, id))
				if got := told(d); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || looked.allowed != want.allowed || looked.denied != want.denied {
					t.Fatalf("seed %d, step %d, %+v:\n     got %+v\n    want %+v\na look says %v", seed, step, s, got, want, looked.allowed)
				}
				if d.Allowed {
					sent = append(sent, d)
				}
			}
		}
	}
}
