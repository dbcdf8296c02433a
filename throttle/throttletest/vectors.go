package throttletest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// The vectors come from an oracle that shares no code with this project.
//
//go:embed testdata/tiers.json
var vectorsJSON []byte

type vectorFile struct {
	Cases []vectorCase `json:"cases"`
}

type vectorCase struct {
	Name  string       `json:"name"`
	Tiers []vectorTier `json:"tiers"`
	Steps []vectorStep `json:"steps"`
}

type vectorTier struct {
	Name   string `json:"name"`
	Limit  int    `json:"limit"`
	Window int64  `json:"window_ms"`
}

type vectorStep struct {
	Op    string        `json:"op"`
	At    int64         `json:"at_ms"`
	Grant int           `json:"grant"` // the step whose admission a release gives back
	Want  vectorVerdict `json:"want"`
}

type vectorVerdict struct {
	Allowed bool             `json:"allowed"`
	Limit   string           `json:"limit"`
	Wait    int64            `json:"wait_ms"`
	Tiers   []vectorStanding `json:"tiers"`
}

type vectorStanding struct {
	Name      string `json:"name"`
	Remaining int    `json:"remaining"`
	Wait      int64  `json:"wait_ms"`
}

// vectors runs one case in so many.
func vectors(t *testing.T, open Open, every int) {
	var file vectorFile
	if err := json.Unmarshal(vectorsJSON, &file); err != nil {
		t.Fatalf("reading the vectors: %v", err)
	}
	if len(file.Cases) != 400 {
		t.Fatalf("%d cases in the vectors, want 400", len(file.Cases))
	}
	for i := 0; i < len(file.Cases); i += every {
		c := file.Cases[i]
		t.Run(c.Name, func(t *testing.T) { c.run(t, open) })
	}
}

func (c vectorCase) run(t *testing.T, open Open) {
	tiers := make([]throttle.Tier, len(c.Tiers))
	for i, tier := range c.Tiers {
		tiers[i] = throttle.Tier{Name: tier.Name, Limit: tier.Limit, Window: tier.Window}
	}
	policy, err := throttle.NewPolicy(tiers...)
	if err != nil {
		t.Fatalf("policy: %v", err)
	}
	clock := clocktest.New(0)
	p := patron{t: t, limiter: open(t, policy, clock.Now), mailbox: newMailbox("vectors")}
	ids := make([]throttle.ID, len(c.Steps))
	for i, step := range c.Steps {
		clock.Set(step.At)
		ids[i] = throttle.NewID()
		switch step.Op {
		case "take":
			step.compare(t, i, p.take(ids[i]))
		case "peek":
			step.compare(t, i, p.peek())
		case "release":
			if _, err := p.limiter.Release(context.Background(), p.mailbox, ids[step.Grant]); err != nil {
				t.Fatalf("step %d: release: %v", i, err)
			}
		case "reset":
			p.reset()
		default:
			t.Fatalf("step %d: unknown op %q", i, step.Op)
		}
	}
}

func (s vectorStep) compare(t *testing.T, step int, v throttle.Verdict) {
	t.Helper()
	got := vectorVerdict{Allowed: v.Allowed, Limit: v.Limit, Wait: v.Wait}
	for _, tier := range v.Tiers() {
		got.Tiers = append(got.Tiers, vectorStanding{Name: tier.Name, Remaining: tier.Remaining, Wait: tier.Wait})
	}
	if want := fmt.Sprint(s.Want); fmt.Sprint(got) != want {
		t.Fatalf("step %d, %s at %d:\n got %v\nwant %s", step, s.Op, s.At, got, want)
	}
}
