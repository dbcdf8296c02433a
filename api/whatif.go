package api

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
)

// The bounds of a trial, so that it does not load the server.
const (
	mostMailboxes = 100_000
	trialTime     = 5 * time.Second
)

// trial is what other tiers would have refused of the sends on record. Its mailboxes have no
// names.
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
}

// whatIfBody asks to try tiers, and to show the sends of one mailbox if there is one.
type whatIfBody struct {
	Tiers *string `json:"tiers" validate:"required,tiers"`
	Email *string `json:"email" validate:"omitnil,address"`
}

// triedTier is how many sends would have waited longest for one tier.
type triedTier struct {
	Name    string `json:"name"`
	Limit   int    `json:"limit"`
	Window  int64  `json:"window_ms"`
	Refused int    `json:"refused"`
}

// tryTiers is POST /admin/what-if: it replays what is on record of mailboxes under other tiers.
// It does one trial at a time.
func (s *Server) tryTiers(c *fiber.Ctx) error {
	r := requestOf(c)
	var body whatIfBody
	if err := s.decode(c, &body); err != nil {
		return err
	}
	policy, err := throttle.ParsePolicy(*body.Tiers)
	if err != nil {
		return err // not after the check
	}
	if !s.trying.TryLock() {
		return &problem{kind: trialUnderWay, retryAfter: busyRetry}
	}
	defer s.trying.Unlock()
	t := newTrial(policy)
	t.ServerTime = wire.Time(s.with.Now())
	if err := t.survey(r.ctx, policy, r.parsed.address, r.live.Rules.Mailbox()); err != nil {
		return explain(err, notRead)
	}
	return respond(c, t)
}

// survey replays all mailboxes, and the one to be shown, if there is one.
func (t *trial) survey(ctx context.Context, policy throttle.Policy, shown address.Address, of throttle.Historian) (err error) {
	if t.Today, err = inForce(ctx, of); err != nil {
		return err
	}
	if !shown.IsZero() {
		if t.Mailbox, err = tryMailbox(ctx, policy, of, shown); err != nil {
			return err
		}
	}
	within, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	err = of.Each(within, func(h throttle.History) bool {
		if t.Complete = t.Mailboxes < mostMailboxes && within.Err() == nil; t.Complete {
			t.replay(policy, h)
		}
		return t.Complete
	})
	if err != nil {
		t.Complete = false
		if within.Err() != nil && errors.Is(err, within.Err()) {
			return nil
		}
	}
	return err
}

func newTrial(policy throttle.Policy) trial {
	t := trial{Tiers: policy.String(), Complete: true, Worst: []triedMailbox{}}
	for _, tier := range policy.Tiers() {
		t.Limits = append(t.Limits, triedTier{tier.Name, tier.Limit, tier.Window.Milliseconds(), 0})
	}
	return t
}

// replay counts one mailbox in.
func (t *trial) replay(policy throttle.Policy, h throttle.History) {
	refused := policy.Replay(h)
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
		t.keepWorst(h, refused)
	}
}
