package api

import (
	"context"
	"slices"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
)

// worstShown is how many of the mailboxes with the most refusals an answer shows.
const worstShown = 5

// tierInForce is one of today's tiers.
type tierInForce struct {
	Name   string `json:"name"`
	Limit  int    `json:"limit"`
	Window int64  `json:"window_ms"`
}

// triedMailbox is the recorded sends of one mailbox, and those that other tiers would have
// refused.
type triedMailbox struct {
	Sends   []string       `json:"sends"`
	Refused []triedRefusal `json:"refused"`
}

type triedRefusal struct {
	At    string `json:"at"`
	Limit string `json:"limit"`
}

// inForce returns today's tiers, as a mailbox without a send sees them.
func inForce(ctx context.Context, mailboxes throttle.Limiter) ([]tierInForce, error) {
	verdict, err := mailboxes.Peek(ctx, "what-if")
	if err != nil {
		return nil, err
	}
	var tiers []tierInForce
	for _, tier := range verdict.Tiers {
		tiers = append(tiers, tierInForce{tier.Name, tier.Limit, tier.Window.Milliseconds()})
	}
	return tiers, nil
}

// tryMailbox replays the sends of one mailbox.
func tryMailbox(ctx context.Context, policy throttle.Policy, mailboxes throttle.Historian, of address.Address) (*triedMailbox, error) {
	h, err := mailboxes.History(ctx, of.Key())
	if err != nil {
		return nil, err
	}
	one := tried(h, policy.Replay(h))
	return &one, nil
}

// tried takes a history and the verdicts that refuse one of its sends.
func tried(h throttle.History, refused []throttle.Verdict) triedMailbox {
	one := triedMailbox{Sends: []string{}, Refused: []triedRefusal{}}
	for _, send := range h {
		one.Sends = append(one.Sends, wire.Time(send.At))
	}
	for _, v := range refused {
		one.Refused = append(one.Refused, triedRefusal{wire.Time(v.Now), v.Limit})
	}
	return one
}

// keepWorst keeps a mailbox among those with the most refusals.
func (t *trial) keepWorst(h throttle.History, refused []throttle.Verdict) {
	if len(t.Worst) == worstShown && len(refused) <= len(t.Worst[worstShown-1].Refused) {
		return
	}
	t.Worst = append(t.Worst, tried(h, refused))
	slices.SortStableFunc(t.Worst, func(a, b triedMailbox) int { return len(b.Refused) - len(a.Refused) })
	t.Worst = t.Worst[:min(len(t.Worst), worstShown)]
}
