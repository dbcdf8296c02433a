package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

// A trial goes no further than this, so that it never becomes a load.
const (
	mostMailboxes = 100_000
	trialTime     = 5 * time.Second
)

// A trial is what other tiers would have refused of the sends on record. It names no
// mailbox.
type trial struct {
	Tiers     string      `json:"tiers"`
	Mailboxes int         `json:"mailboxes"` // that were looked at
	Sends     int         `json:"sends"`
	Refused   int         `json:"refused"`
	Affected  int         `json:"affected"` // mailboxes with a send refused
	Limits    []triedTier `json:"limits"`
	Complete  bool        `json:"complete"` // whether all mailboxes were looked at
}

// A triedTier is how many sends would have waited longest for one tier.
type triedTier struct {
	Name    string `json:"name"`
	Limit   int    `json:"limit"`
	Window  int64  `json:"window_ms"`
	Refused int    `json:"refused"`
}

func readWhatIf(in *incoming) (throttle.Policy, error) {
	var tiers text
	if err := readBody(in, []field{{name: "tiers", text: &tiers}}); err != nil {
		return throttle.Policy{}, err
	}
	if !tiers.given {
		return throttle.Policy{}, &problem{kind: invalid, fields: []fieldProblem{{"tiers", "missing", "tiers is missing."}}}
	}
	policy, err := throttle.ParsePolicy(tiers.value)
	if err != nil {
		sentence := err.Error()
		return policy, &problem{kind: invalid, fields: []fieldProblem{{"tiers", "invalid", strings.ToUpper(sentence[:1]) + sentence[1:] + "."}}}
	}
	return policy, nil
}

// whatIf replays what is on record of mailboxes under other tiers. It does one trial at a
// time.
func (s *Server) whatIf(ctx context.Context, c *call, policy throttle.Policy) (trial, error) {
	if !s.trying.TryLock() {
		return trial{}, &problem{kind: trialUnderWay, retryAfter: busyRetry}
	}
	defer s.trying.Unlock()
	within, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	t := newTrial(policy)
	err := c.live.Rules.Mailbox().Each(within, func(h throttle.History) bool {
		if t.Complete = t.Mailboxes < mostMailboxes && within.Err() == nil; t.Complete {
			t.replay(policy, h)
		}
		return t.Complete
	})
	if err != nil {
		t.Complete = false
		if within.Err() == nil || !errors.Is(err, within.Err()) {
			return trial{}, err
		}
	}
	return t, nil
}

func newTrial(policy throttle.Policy) trial {
	t := trial{Tiers: policy.String(), Complete: true}
	for _, tier := range policy.Tiers() {
		t.Limits = append(t.Limits, triedTier{tier.Name, tier.Limit, tier.Window.Milliseconds(), 0})
	}
	return t
}

// replay counts one mailbox in.
func (t *trial) replay(policy throttle.Policy, h throttle.History) {
	before := t.Refused
	for v := range policy.Replay(h) {
		t.Refused++
		for i := range t.Limits {
			if t.Limits[i].Name == v.Limit {
				t.Limits[i].Refused++
			}
		}
	}
	t.Mailboxes++
	t.Sends += len(h)
	if t.Refused > before {
		t.Affected++
	}
}
