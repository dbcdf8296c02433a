package api

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// past keeps the newest sends that this server admitted, for trials of rules.
type past struct {
	mu   sync.Mutex
	all  []pastSend // a ring, once it is full
	next int        // the oldest
}

type pastSend struct {
	at       int64
	send     rules.Send
	verified bool // a code of its mailbox was right; of its caller's, if it has one
}

const (
	mostPast = 20_000
	pastDay  = int64(24 * 60 * 60 * 1000)
)

func (p *past) add(at int64, send rules.Send, verified bool) {
	send.Template, send.Purpose = strings.Clone(send.Template), strings.Clone(send.Purpose) // of a body, which outlives no request
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) < mostPast {
		p.all = append(p.all, pastSend{at, send, verified})
		return
	}
	p.all[p.next] = pastSend{at, send, verified}
	p.next = (p.next + 1) % mostPast
}

// after returns the sends after a time, oldest first.
func (p *past) after(at int64) []pastSend {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Concat(p.all[p.next:], p.all[:p.next])
	return slices.DeleteFunc(all, func(one pastSend) bool { return one.at <= at })
}

// rulesTrial is what other rules would have refused of the sends that were admitted.
type rulesTrial struct {
	Since      *string     `json:"since"` // when the first of them was admitted
	Sends      int         `json:"sends"`
	Refused    int         `json:"refused"`
	Challenged int         `json:"challenged"` // asked for a challenge
	Mailboxes  int         `json:"mailboxes"`  // with a send refused
	Visitors   int         `json:"visitors"`   // who would have been refused
	Rules      []triedRule `json:"rules"`
	Complete   bool        `json:"complete"` // whether there was time for all
	ServerTime string      `json:"server_time"`
	counts     map[triedRule]int
}

type triedRule struct {
	Rule    string `json:"rule"`
	Shadow  bool   `json:"shadow"`
	Refused int    `json:"refused"`
}

// tryRules handles POST /admin/what-if/rules: it replays the sends of a day under the rules file as it is now, before
// a reload puts it in force.
func (s *Server) tryRules(r *request, _ *none) (any, error) {
	if !s.trying.TryLock() {
		return nil, &problem{kind: trialInProgress, retryAfter: soon}
	}
	defer s.trying.Unlock()
	var clock atomic.Int64
	set, done, err := s.with.TryRules(clock.Load)
	if err != nil {
		return nil, invalidFields([]fieldProblem{{"rules", "invalid", "The rules file is invalid: " + err.Error() + "."}})
	}
	defer done()
	now := s.with.Now()
	t := rulesTrial{Complete: true, Rules: []triedRule{}, ServerTime: wire.Time(now), counts: map[triedRule]int{}}
	within, cancel := context.WithTimeout(r.ctx, trialTime)
	defer cancel()
	return &t, t.replay(within, set, &clock, s.past.after(now-pastDay))
}

// replay takes the sends again, each at its own time.
func (t *rulesTrial) replay(ctx context.Context, set *rules.Set, clock *atomic.Int64, all []pastSend) error {
	mailboxes, visitors := map[string]bool{}, map[string]bool{}
	unverified := map[string]map[string][]rules.Charge{} // by mailbox and caller
	for _, one := range all {
		if t.Complete = ctx.Err() == nil; !t.Complete {
			break
		}
		clock.Store(max(clock.Load(), one.at))
		if one.verified {
			if err := verifyAgain(ctx, set, unverified[one.send.Mailbox], one.send.Caller); err != nil {
				return err
			}
			continue
		}
		d, err := set.Take(ctx, one.send, throttle.NewID())
		if err != nil {
			return err
		}
		if t.Sends++; t.Since == nil {
			since := wire.Time(one.at)
			t.Since = &since
		}
		t.count(&d)
		if text, _ := set.Unverified(d.Charges); text != "" {
			if unverified[one.send.Mailbox] == nil {
				unverified[one.send.Mailbox] = map[string][]rules.Charge{}
			}
			of := unverified[one.send.Mailbox]
			of[one.send.Caller] = append(of[one.send.Caller], set.Returned(text)...)
		}
		if d.Challenge {
			t.Challenged++
		} else if !d.Allowed {
			t.Refused++
			mailboxes[one.send.Mailbox] = true
			visitors[network.Visitor(one.send.Client)] = true
		}
	}
	delete(visitors, "") // unknown
	t.Mailboxes, t.Visitors = len(mailboxes), len(visitors)
	for _, rule := range slices.SortedFunc(maps.Keys(t.counts), func(a, b triedRule) int { return strings.Compare(a.Rule, b.Rule) }) {
		rule.Refused = t.counts[rule]
		t.Rules = append(t.Rules, rule)
	}
	return nil
}

// verifyAgain returns what the sends to a mailbox were charged until its code was right: those of a caller, or of all.
func verifyAgain(ctx context.Context, set *rules.Set, unverified map[string][]rules.Charge, caller string) error {
	var all []rules.Charge
	for whose, charges := range unverified {
		if caller == "" || caller == whose {
			all = append(all, charges...)
			delete(unverified, whose)
		}
	}
	err := set.Verified(ctx, all)
	_, failure := set.Release(ctx, all)
	return errors.Join(err, failure)
}

// count counts what refuses a send, or would if it were no shadow.
func (t *rulesTrial) count(d *rules.Decision) {
	if d.Denied != "" {
		t.counts[triedRule{Rule: d.Denied}]++
	}
	for _, refusal := range d.Refusals {
		t.counts[triedRule{Rule: refusal.Rule}]++
	}
	for _, refusal := range d.Shadow {
		t.counts[triedRule{Rule: refusal.Rule, Shadow: true}]++
	}
}
