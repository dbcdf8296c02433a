package throttletest

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
)

// The vectors were made by an oracle that shares no code with this project.
//
//go:embed testdata/tiers.json.gz
var vectorsFile []byte

type vector struct {
	Name  string
	Tiers []struct {
		Name   string
		Limit  int
		Window int64 `json:"window_ms"`
	}
	Steps []struct {
		Op    string
		At    int64 `json:"at_ms"`
		Grant int   // the step whose admission a release refunds
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
}

// vectors runs cases on a limiter: each of them, or every third or so.
func vectors(t *testing.T, open Open, every int) {
	unpacked, err := gzip.NewReader(bytes.NewReader(vectorsFile))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []vector }
	if err := json.NewDecoder(unpacked).Decode(&file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 400 {
		t.Fatalf("%d cases in the vectors, want 400", len(file.Cases))
	}
	for i := 0; i < len(file.Cases); i += every {
		file.Cases[i].run(t, open)
	}
}

func (c vector) run(t *testing.T, open Open) {
	var tiers []throttle.Tier
	for _, tier := range c.Tiers {
		tiers = append(tiers, throttle.Tier{Name: tier.Name, Limit: tier.Limit, Window: time.Duration(tier.Window) * time.Millisecond})
	}
	k := newKey(t, open, must.Get(throttle.NewPolicy(tiers...))(t))
	admissions := make([]throttle.Admission, len(c.Steps))
	for i, step := range c.Steps {
		k.set(step.At)
		var v throttle.Verdict
		switch step.Op {
		case "take":
			admissions[i].ID = throttle.NewID()
			v = k.take(admissions[i].ID)
			admissions[i].At = v.At
		case "peek":
			v = k.peek()
		case "release":
			k.release(admissions[step.Grant])
			continue
		case "reset":
			k.reset()
			continue
		default:
			t.Fatalf("%s, step %d: unknown operation %q", c.Name, i, step.Op)
		}
		got := fmt.Sprint(v.Allowed, v.Limit, v.Wait)
		for _, tier := range v.Tiers {
			got += fmt.Sprint(" ", tier.Name, tier.Remaining, tier.Wait)
		}
		want := fmt.Sprint(step.Want.Allowed, step.Want.Limit, step.Want.Wait)
		for _, tier := range step.Want.Tiers {
			want += fmt.Sprint(" ", tier.Name, tier.Remaining, tier.Wait)
		}
		if got != want {
			t.Fatalf("%s, step %d, %s at %d\n got %s\nwant %s", c.Name, i, step.Op, step.At, got, want)
		}
	}
}
