package throttle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

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

// The pure functions alone give every answer of the independent oracle: a limiter
// adds a place for the history and nothing to the rule.
func TestVectors(t *testing.T) {
	bytes, err := os.ReadFile("throttletest/testdata/tiers.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []vector }
	if err := json.Unmarshal(bytes, &file); err != nil {
		t.Fatal(err)
	}
	answers := 0
	for _, v := range file.Cases {
		t.Run(v.Name, func(t *testing.T) { answers += v.run(t) })
	}
	if len(file.Cases) != 400 || answers != 12_095 {
		t.Errorf("%d answers in %d cases were compared, want 12095 in 400", answers, len(file.Cases))
	}
}

func (v vector) run(t *testing.T) (answers int) {
	p := v.policy(t)
	var h throttle.History
	for i, step := range v.Steps {
		var got throttle.Verdict
		switch step.Op {
		case "take":
			got = throttle.Decide(p, h, step.At)
			if got.Allowed {
				h = h.With(p, idOf(i), step.At)
				got = throttle.Admitted(p, h, step.At)
			}
		case "peek":
			got = throttle.Decide(p, h, step.At)
		case "release":
			h, _ = h.Without(idOf(step.Grant))
			continue
		case "reset":
			h = nil
			continue
		default:
			t.Fatalf("step %d: unknown op %q", i, step.Op)
		}
		answers++
		if got, want := spell(got), step.want(); got != want {
			t.Fatalf("step %d, %s at %d\n got %s\nwant %s", i, step.Op, step.At, got, want)
		}
	}
	return answers
}

func (v vector) policy(t *testing.T) throttle.Policy {
	var tiers []throttle.Tier
	for _, tier := range v.Tiers {
		tiers = append(tiers, throttle.Tier{Name: tier.Name, Limit: tier.Limit, Window: tier.Window})
	}
	p, err := throttle.NewPolicy(tiers...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// want spells the oracle's verdict as spell does ours.
func (s vectorStep) want() string {
	text := "no"
	if s.Want.Allowed {
		text = "yes"
	}
	text += fmt.Sprintf(" %s %d", s.Want.Limit, s.Want.Wait)
	for _, tier := range s.Want.Tiers {
		text += fmt.Sprintf(" [%s %d %d]", tier.Name, tier.Remaining, tier.Wait)
	}
	return text
}
