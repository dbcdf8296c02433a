package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/strictyaml"
	"github.com/mailgate/mailgate/throttle/meter"
)

// readRules puts the rules of the file over the built-in ones.
func readRules(whole parts, all []Rule, d Defaults) ([]Rule, error) {
	seen := names{}
	err := whole.each("rules", "rule", maxRules, func(v strictyaml.Value) error {
		rule, off, err := readRule(v, seen, d)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(r Rule) bool { return r.Name == rule.Name })
		switch {
		case off && at >= 0:
			all = slices.Delete(all, at, at+1)
		case off:
		case at >= 0:
			all[at] = rule
		default:
			all = append(all, rule)
		}
		return nil
	})
	return all, err
}

// A preset is what a rule need not say of itself.
type preset struct {
	by               rules.By
	algorithm, limit string
	fixed            bool // it can be counted by no other algorithm
}

func presetOf(name string, d Defaults) preset {
	switch name {
	case rules.MailboxRule:
		return preset{rules.ByMailbox, slidingLog, d.Tiers.String(), true}
	case ClientIPRule:
		return preset{rules.ByClientIP, slidingWindow, "minute=100/60s", false}
	}
	return preset{algorithm: slidingLog}
}

// readRule reads one rule. One that is off is checked like any other.
func readRule(v strictyaml.Value, seen names, d Defaults) (r Rule, off bool, err error) {
	p, err := readParts(v, "a rule", "name", "by", "algorithm", "limit", "parts", "burst", "queue",
		"keep_for_first_sends", "shadow", "off", "exempt")
	if err != nil {
		return r, false, err
	}
	if r.Name, err = seen.read(p); err != nil {
		return r, false, err
	}
	set := presetOf(r.Name, d)
	for _, read := range []func() error{
		func() (err error) { r.By, err = readBy(p, set.by); return },
		func() (err error) { r.Count, err = readCount(p, set); return },
		func() error { return p.readKept(&r) },
		func() (err error) { r.Shadow, err = p.yes("shadow"); return },
		func() (err error) { off, err = p.yes("off"); return },
		func() (err error) { r.Exempt, err = readExempt(p, d); return },
		func() error { return p.checkDelay(r.Meter, d.SendDeadline) },
	} {
		if err := read(); err != nil {
			return Rule{}, false, err
		}
	}
	if r.Name == rules.MailboxRule {
		err = p.checkMailboxRule(r, off, d)
	}
	return r, off, err
}

// readBy is what the rule counts by; of a built-in rule it is known.
func readBy(p parts, known rules.By) (rules.By, error) {
	text, err := p.text("by", string(known))
	switch by := rules.By(text); {
	case err != nil:
		return "", err
	case by == "":
		return "", p.whole.Refuse("it does not say by what it counts; by is one of " + bys())
	case !slices.Contains(rules.Bys(), by):
		return "", p.at("by").Refuse("it must be one of " + bys())
	case known != "" && by != known:
		return "", p.at("by").Refuse(fmt.Sprintf("this rule is built in and counts by %s", known))
	default:
		return by, nil
	}
}

func bys() string {
	var all []string
	for _, by := range rules.Bys() {
		all = append(all, string(by))
	}
	return strings.Join(all, ", ")
}

// readKept reads how many sends are kept from those who have had one.
func (p parts) readKept(r *Rule) (err error) {
	const name = "keep_for_first_sends"
	if r.KeepForFirstSends, err = p.number(name, 1); err != nil || r.KeepForFirstSends == 0 {
		return err
	}
	if r.Meter == nil {
		return p.at(name).Refuse("a " + slidingLog + " cannot keep any; use another algorithm")
	}
	if r.Resends, err = r.Meter.Reserving(r.KeepForFirstSends); err != nil {
		return p.at(name).Refuse(err.Error())
	}
	return nil
}

// checkMailboxRule holds the rule that is always there to what it has to be.
func (p parts) checkMailboxRule(r Rule, off bool, d Defaults) error {
	_, limited := p.byName["limit"]
	switch {
	case off:
		return p.at("off").Refuse("this rule cannot be removed; shadow: true has it refuse nothing")
	case r.Meter != nil:
		return p.at("algorithm").Refuse("this rule is built in and is a " + slidingLog)
	case limited && d.TiersSetBy != "":
		return p.at("limit").Refuse("it was already set by " + d.TiersSetBy)
	}
	return nil
}

// checkDelay refuses a queue in which a send could wait until too little of its time is
// left for the relay: more than half of it.
func (p parts) checkDelay(m meter.Meter, deadline int64) error {
	leaky, ok := m.(meter.LeakyBucket)
	if !ok {
		return nil
	}
	tier := leaky.Tier()
	queued, limit := int64(leaky.Room()-1), int64(tier.Limit)
	if longest := (queued*tier.Window + limit - 1) / limit; longest > deadline/2 {
		return p.at("queue").Refuse(fmt.Sprintf("the last of %d would wait %d ms, and may wait %d ms: half of what a send may take, as the relay needs the rest",
			queued, longest, deadline/2))
	}
	return nil
}

// readActions reads the limits that stand for themselves.
func readActions(whole parts) (all []Action, err error) {
	seen := names{}
	err = whole.each("actions", "action", maxActions, func(v strictyaml.Value) (err error) {
		p, err := readParts(v, "an action", "name", "algorithm", "limit", "parts", "burst", "queue")
		if err != nil {
			return err
		}
		var a Action
		if a.Name, err = seen.read(p); err != nil {
			return err
		}
		a.Count, err = readCount(p, presetOf("", Defaults{}))
		all = append(all, a)
		return err
	})
	return all, err
}
