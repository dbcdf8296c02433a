package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
)

// The bounds of a trial, so that it does not load the server.
const (
	mostMailboxes = 100_000
	trialTime     = 5 * time.Second
)

// A trial is what other tiers would have refused of the sends on record. Its mailboxes have
// no names.
type trial struct {
	Tiers     string      `json:"tiers"`
	Mailboxes int         `json:"mailboxes"` // that were looked at
	Sends     int         `json:"sends"`
	Refused   int         `json:"refused"`
	Affected  int         `json:"affected"` // mailboxes with a send refused
	Limits    []triedTier `json:"limits"`
	Complete  bool        `json:"complete"` // whether all mailboxes were looked at

	ServerTime string         `json:"server_time"`
	Today      []tierInForce  `json:"today"`
	Worst      []triedMailbox `json:"worst"`             // the mailboxes with the most refusals
	Mailbox    *triedMailbox  `json:"mailbox,omitempty"` // the one that was asked for
}

// A trialRequest asks to try tiers, and to show the sends of one mailbox if there is one.
type trialRequest struct {
	policy  throttle.Policy
	mailbox *address.Address
}

// A triedTier is how many sends would have waited longest for one tier.
type triedTier struct {
	Name    string `json:"name"`
	Limit   int    `json:"limit"`
	Window  int64  `json:"window_ms"`
	Refused int    `json:"refused"`
}

func (s *Server) readWhatIf(in *incoming) (q trialRequest, err error) {
	var tiers, email text
	if err := readBody(in, []field{{name: "tiers", text: &tiers}, {name: "email", text: &email}}); err != nil {
		return q, err
	}
	var wrong []fieldProblem
	if !tiers.given {
		wrong = append(wrong, fieldProblem{"tiers", "missing", "tiers is missing."})
	} else if q.policy, err = throttle.ParsePolicy(tiers.value); err != nil {
		sentence := err.Error()
		wrong = append(wrong, fieldProblem{"tiers", "invalid", strings.ToUpper(sentence[:1]) + sentence[1:] + "."})
	}
	if email.given {
		of, err := s.recipient(email)
		if err != nil {
			wrong = append(wrong, recipientProblem(err))
		}
		q.mailbox = &of
	}
	if wrong != nil {
		return q, &problem{kind: invalid, fields: wrong}
	}
	return q, nil
}

// notRead is the answer to operators when the storage failed.
const notRead = "The records cannot be read now. Try again shortly."

// whatIf replays what is on record of mailboxes under other tiers. It does one trial at a
// time.
func (s *Server) whatIf(ctx context.Context, c *call, q trialRequest) (trial, error) {
	if !s.trying.TryLock() {
		return trial{}, &problem{kind: trialUnderWay, retryAfter: busyRetry}
	}
	defer s.trying.Unlock()
	t := newTrial(q.policy)
	t.ServerTime = wire.Time(s.with.Now())
	if err := t.survey(ctx, q, c.live.Rules.Mailbox()); err != nil {
		return trial{}, inWords(err, notRead)
	}
	return t, nil
}

func (t *trial) survey(ctx context.Context, q trialRequest, of throttle.Historian) (err error) {
	if t.Today, err = inForce(ctx, of); err != nil {
		return err
	}
	if q.mailbox != nil {
		if t.Mailbox, err = tryMailbox(ctx, q.policy, of, *q.mailbox); err != nil {
			return err
		}
	}
	within, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	err = of.Each(within, func(h throttle.History) bool {
		if t.Complete = t.Mailboxes < mostMailboxes && within.Err() == nil; t.Complete {
			t.replay(q.policy, h)
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
	refused := slices.Collect(policy.Replay(h))
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
