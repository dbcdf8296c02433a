package throttletest

import (
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// The vectors come from an oracle that shares no code with this project.
//
//go:embed testdata/tiers.json
var vectorsJSON []byte

type vector struct {
	Name  string
	Tiers []struct {
		Name   string
		Limit  int
		Window int64 `json:"window_ms"`
	}
	Steps []vectorStep
}

type vectorStep struct {
	Op    string
	At    int64 `json:"at_ms"`
	Grant int   // the step whose admission a release gives back
	Want  struct {
		Allowed bool
		Limit   string
		Wait    int64 `json:"wait_ms"`
		Tiers   []struct {
			Name      string
			Remaining int
			Wait      int64 `json:"wait_ms"`
		}
	}
}

// vectors runs one case in so many.
func vectors(t *testing.T, open Open, every int) {
	var file struct{ Cases []vector }
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

func (c vector) run(t *testing.T, open Open) {
	var tiers []throttle.Tier
	for _, tier := range c.Tiers {
		tiers = append(tiers, throttle.Tier{Name: tier.Name, Limit: tier.Limit, Window: tier.Window})
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
			p.release(ids[step.Grant])
		case "reset":
			p.reset()
		default:
			t.Fatalf("step %d: unknown op %q", i, step.Op)
		}
	}
}

func (s vectorStep) compare(t *testing.T, step int, v throttle.Verdict) {
	t.Helper()
	var tiers []throttle.Standing
	for _, tier := range s.Want.Tiers {
		tiers = append(tiers, throttle.Standing{Tier: throttle.Tier{Name: tier.Name}, Remaining: tier.Remaining, Wait: tier.Wait})
	}
	want := spellOut(s.Want.Allowed, s.Want.Limit, s.Want.Wait, tiers)
	if got := spell(v); got != want {
		t.Fatalf("step %d, %s at %d\n got %s\nwant %s", step, s.Op, s.At, got, want)
	}
}
