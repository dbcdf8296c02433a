package throttletest

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// RunZeroPolicy checks a view by the zero Policy, as view makes it of the limiter that open
// returns. The zero Policy would refuse nothing, so the limiter's own stays in force.
func RunZeroPolicy(t *testing.T, open Open, view func(l throttle.Historian, p throttle.Policy) throttle.Historian) {
	p, clock := begin(t, open, "minute=1/60s,hour=3/1h")
	p.limiter = view(p.limiter.(throttle.Historian), throttle.Policy{})
	p.mailbox = newMailbox("zero")
	expect(t, p.peek(), "yes  0 [minute 1 0] [hour 3 0]")
	expect(t, p.take(throttle.NewID()), "yes minute 60000 [minute 0 60000] [hour 2 0]")
	expect(t, p.take(throttle.NewID()), "no minute 60000 [minute 0 60000] [hour 2 0]")
	clock.Add(60_000)
	want := "yes  0 [minute 1 0] [hour 2 0]"
	if _, ok := p.recorder(); ok {
		p.record(throttle.NewID(), start+30_000)
		want = "no minute 30000 [minute 0 30000] [hour 1 0]"
	}
	expect(t, p.peek(), want)
	if n := len(p.history()); n == 0 || n != p.reset() {
		t.Errorf("%d sends inside the longest window", n)
	}
}
