package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// The bounds of a trial, so that it does not load the server, and of its answer.
const (
	mostMailboxes = 100_000
	trialTime     = 5 * time.Second
	worstShown    = 5
)

// whatIfBody asks to try tiers, and to show the sends of one mailbox if there is one.
type whatIfBody struct {
	Tiers *string `json:"tiers" validate:"required"`
	Email email   `json:"email" validate:"noaddress"`

	policy throttle.Policy
}

func (b *whatIfBody) check(_ *Server, _ *request, wrong []fieldProblem) []fieldProblem {
	if b.Tiers == nil {
		return wrong
	}
	var err error
	if b.policy, err = throttle.ParsePolicy(*b.Tiers); err != nil {
		wrong = append(wrong, fieldProblem{"tiers", "invalid", sentence(err.Error())})
	}
	return wrong
}

// trial is what other tiers would have refused of the sends on record.
type trial struct {
	Tiers     string      `json:"tiers"`
	Mailboxes int         `json:"mailboxes"` // read
	Sends     int         `json:"sends"`
	Refused   int         `json:"refused"`
	Affected  int         `json:"affected"` // mailboxes with a send refused
	Limits    []triedTier `json:"limits"`
	Complete  bool        `json:"complete"` // whether all mailboxes were read

	ServerTime string         `json:"server_time"`
	Today      []tierInForce  `json:"today"`
	Worst      []triedMailbox `json:"worst"`             // the mailboxes with the most refusals
	Mailbox    *triedMailbox  `json:"mailbox,omitempty"` // the one of the request

	policy throttle.Policy
}

type tierInForce struct {
	Name   string `json:"name"`
	Limit  int    `json:"limit"`
	Window int64  `json:"window_ms"`
}

// triedTier is how many sends would have waited longest for one tier.
type triedTier struct {
	tierInForce
	Refused int `json:"refused"`
}

// triedMailbox is the recorded sends of one mailbox, and those that other tiers would have
// refused.
type triedMailbox struct {
	Email   string         `json:"email"`
	Sends   []string       `json:"sends"`
	Refused []triedRefusal `json:"refused"`
}

type triedRefusal struct {
	At    string `json:"at"`
	Limit string `json:"limit"`
}

// tryTiers handles POST /admin/what-if: it replays the recorded sends under other tiers, one trial
// at a time.
func (s *Server) tryTiers(r *request, body *whatIfBody) (any, error) {
	if !s.trying.TryLock() {
		return nil, &problem{kind: trialInProgress, retryAfter: soon}
	}
	defer s.trying.Unlock()
	t := newTrial(body.policy)
	t.ServerTime = wire.Time(s.with.Now())
	err := t.survey(r.ctx, r.live.Rules.Mailbox(rules.Send{}), body.Email.Key())
	return t, err
}

func newTrial(policy throttle.Policy) trial {
	t := trial{Tiers: policy.String(), Complete: true, Worst: []triedMailbox{}, policy: policy}
	for _, tier := range policy.Tiers() {
		t.Limits = append(t.Limits, triedTier{tierInForce{tier.Name, tier.Limit, tier.Window.Milliseconds()}, 0})
	}
	return t
}

// survey replays all mailboxes, and the one to be shown, if there is one.
func (t *trial) survey(ctx context.Context, mailboxes *throttle.Limiter, shown string) error {
	today, err := mailboxes.Peek(ctx, "what-if") // as a mailbox without a send sees it
	if err != nil {
		return err
	}
	for _, tier := range today.Tiers {
		t.Today = append(t.Today, tierInForce{tier.Name, tier.Limit, tier.Window.Milliseconds()})
	}
	if shown != "" {
		h, err := mailboxes.History(ctx, shown)
		if err != nil {
			return err
		}
		one := tried(shown, h, t.policy.Replay(h))
		t.Mailbox = &one
	}
	within, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	err = mailboxes.Each(within, func(mailbox string, h throttle.History) bool {
		if t.Complete = t.Mailboxes < mostMailboxes && within.Err() == nil; t.Complete {
			t.replay(mailbox, h)
		}
		return t.Complete
	})
	if within.Err() != nil && errors.Is(err, within.Err()) {
		t.Complete = false
		return nil
	}
	return err
}

// replay adds one mailbox.
func (t *trial) replay(mailbox string, h throttle.History) {
	refused := t.policy.Replay(h)
	for _, v := range refused {
		for i := range t.Limits {
			if t.Limits[i].Name == v.Limit {
				t.Limits[i].Refused++
			}
		}
	}
	t.Mailboxes++
	t.Sends += len(h)
	t.Refused += len(refused)
	if len(refused) > 0 {
		t.Affected++
		t.keepWorst(mailbox, h, refused)
	}
}

// keepWorst keeps a mailbox among those with the most refusals.
func (t *trial) keepWorst(mailbox string, h throttle.History, refused []throttle.Verdict) {
	if len(t.Worst) == worstShown && len(refused) <= len(t.Worst[worstShown-1].Refused) {
		return
	}
	t.Worst = append(t.Worst, tried(mailbox, h, refused))
	slices.SortStableFunc(t.Worst, func(a, b triedMailbox) int { return len(b.Refused) - len(a.Refused) })
	t.Worst = t.Worst[:min(len(t.Worst), worstShown)]
}

// tried describes a history and the verdicts that refuse some of its sends.
func tried(mailbox string, h throttle.History, refused []throttle.Verdict) triedMailbox {
	one := triedMailbox{Email: mailbox, Sends: []string{}, Refused: []triedRefusal{}}
	for _, send := range h {
		one.Sends = append(one.Sends, wire.Time(send.At))
	}
	for _, v := range refused {
		one.Refused = append(one.Refused, triedRefusal{wire.Time(v.Now), v.Limit})
	}
	return one
}
