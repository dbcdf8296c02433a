package rulefile

import (
	"math"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/mailgate/mailgate/internal/yamlfile"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// unverified is what a rule may count other than every send.
const unverified = "unverified"

// percent is a share that is written as a fraction, such as 0.3.
type percent int

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (p *percent) UnmarshalYAML(node ast.Node) error {
	const most = 10
	share, err := strconv.ParseFloat(node.GetToken().Value, 64)
	if whole := math.Round(share * 100); err == nil && whole >= 1 && whole <= most*100 && math.Abs(share*100-whole) < 1e-6 {
		*p = percent(whole)
		return nil
	}
	return yamlfile.Wrong(node, "it must be a number from 0.01 to 10, of up to two decimals")
}

// budget reads how a rule counts unverified sends.
func (t ruleText) budget(r *rules.Rule) error {
	algorithm := r.Limiter.Algorithm
	switch {
	case t.Counts == "" && t.Ratio != nil:
		return refuse("ratio", "it goes with counts: "+unverified)
	case t.Counts == "":
		return nil
	case t.Counts != unverified:
		return refuse("counts", "it must be "+unverified+"; without it every send counts")
	case t.Ratio != nil && t.Count.Algorithm != slidingWindow:
		return refuse("algorithm", "with a ratio it is a %s: a %s counts %d sends at most", slidingWindow, slidingLog, throttle.MaxKept)
	case t.Count.Algorithm != slidingLog && t.Count.Algorithm != slidingWindow:
		return refuse("counts", "it needs a %s or a %s, not a %s", slidingLog, slidingWindow, t.Count.Algorithm)
	case r.Resends != nil:
		return refuse("keep_for_first_sends", "it does not go with counts: "+unverified)
	case !r.By.Has(rules.ByMailbox) && !r.By.Has(rules.ByClientIP) && !r.Challenge && !r.Shadow:
		return refuse("counts", "counted by %s, a few sends would block everybody; add then: %s, or count by client_ip or mailbox", r.By, challenge)
	}
	if policy, ok := algorithm.(throttle.Policy); ok && len(policy.Tiers()) > 1 {
		return refuse("limit", "with counts: %s it is one limit, such as floor=10/24h", unverified)
	}
	r.Budget = new(rules.Budget)
	if t.Ratio == nil {
		return nil
	}
	window := time.Duration(algorithm.Window()) * time.Millisecond
	verified, err := throttle.NewSlidingWindow(throttle.Tier{Name: "verified", Limit: 1_000_000_000, Window: window}, 0)
	if err == nil {
		*r.Budget = rules.Budget{Percent: int(*t.Ratio), Verified: throttle.New(verified, nil)}
	}
	return err
}
