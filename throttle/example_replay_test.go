package throttle_test

import (
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// What three mails in an hour would have meant under a tighter limit.
func ExampleReplay() {
	history := throttle.History{
		{ID: throttle.NewID(), At: 0},
		{ID: throttle.NewID(), At: 20 * 60_000},
		{ID: throttle.NewID(), At: 45 * 60_000},
	}
	policy, _ := throttle.ParsePolicy("half-hour=1/30m")
	for v := range throttle.Replay(policy, history) {
		fmt.Printf("the send after %d min waits %d min for %s\n", v.Now/60_000, v.Wait/60_000, v.Limit)
	}
	// Output:
	// the send after 20 min waits 10 min for half-hour
}
