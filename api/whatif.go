package api

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

const (
	pastDay   = int64(24 * 60 * 60 * 1000)
	trialTime = 5 * time.Second // so that a trial does not load the server
)

// whatIfBody asks to try other tiers for mailboxes, those of the rules without any.
type whatIfBody struct {
	Tiers *string `json:"tiers"`

	policy *throttle.Policy
}

func (b *whatIfBody) check(_ *Server, _ *request, wrong []fieldProblem) []fieldProblem {
	if b.Tiers == nil {
		return wrong
	}
	policy, err := throttle.ParsePolicy(*b.Tiers)
	if err != nil {
		return append(wrong, fieldProblem{"tiers", "invalid", sentence(err.Error())})
	}
	b.policy = &policy
	return wrong
}

// trial is what other rules would have refused of the sends that were admitted.
type trial struct {
	Since      wire.Moment `json:"since"` // when the first of them was admitted
	Sends      int         `json:"sends"`
	Refused    int         `json:"refused"`
	Challenged int         `json:"challenged"` // asked for a challenge
	Mailboxes  int         `json:"mailboxes"`  // with a send refused
	Visitors   int         `json:"visitors"`   // who would have been refused
	Rules      []triedRule `json:"rules"`
	Complete   bool        `json:"complete"` // whether there was time for all
	ServerTime wire.Moment `json:"server_time"`
	counts     map[triedRule]int
}

type triedRule struct {
	Rule    string `json:"rule"`
	Shadow  bool   `json:"shadow"`
	Refused int    `json:"refused"`
}

// whatIf handles POST /admin/what-if: it replays the sends of a day under the present rules file, or with other tiers in
// it, before a reload puts them in force. One trial runs at a time.
func (s *Server) whatIf(r *request, body *whatIfBody) (any, error) {
	if !s.trying.TryLock() {
		return nil, &problem{kind: trialInProgress, retryAfter: soon}
	}
	defer s.trying.Unlock()
	var clock atomic.Int64
	set, done, err := s.with.TryRules(clock.Load, body.policy)
	if err != nil {
		return nil, invalidFields(fieldProblem{"rules", "invalid", "The rules file is invalid: " + err.Error() + "."})
	}
	defer done()
	now := s.with.Now()
	t := trial{Complete: true, Rules: []triedRule{}, ServerTime: wire.Moment(now), counts: map[triedRule]int{}}
	within, cancel := context.WithTimeout(r.ctx, trialTime)
	defer cancel()
	return &t, t.replay(within, set, &clock, s.with.Delivery.Past(now-pastDay))
}

// replay takes the sends again, each at its own time.
func (t *trial) replay(ctx context.Context, set *rules.Set, clock *atomic.Int64, all []delivery.PastSend) error {
	mailboxes, visitors := map[string]bool{}, map[string]bool{}
	unverified := map[string]map[string][]rules.Charge{} // by mailbox and caller
	for _, one := range all {
		if t.Complete = ctx.Err() == nil; !t.Complete {
			break
		}
		clock.Store(max(clock.Load(), one.At))
		if one.Verified {
			if err := verifyAgain(ctx, set, unverified[one.Send.Mailbox], one.Send.Caller); err != nil {
				return err
			}
			continue
		}
		d, err := set.Take(ctx, one.Send, throttle.NewID())
		if err != nil {
			return err
		}
		if t.Sends++; t.Since == 0 {
			t.Since = wire.Moment(one.At)
		}
		t.count(&d)
		if text, _ := set.Unverified(d.Charges); text != "" {
			if unverified[one.Send.Mailbox] == nil {
				unverified[one.Send.Mailbox] = map[string][]rules.Charge{}
			}
			of := unverified[one.Send.Mailbox]
			of[one.Send.Caller] = append(of[one.Send.Caller], set.Returned(text)...)
		}
		if d.Challenge {
			t.Challenged++
		} else if !d.Allowed {
			t.Refused++
			mailboxes[one.Send.Mailbox] = true
			visitors[network.Visitor(one.Send.Client)] = true
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
func (t *trial) count(d *rules.Decision) {
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
