package meter_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// The picture in the documentation: five are asked for just before a window ends and five
// just after, then one each four seconds. A column is two seconds.
func Example_picture() {
	fmt.Print(picture())
	// Output:
	// asked           .....55.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.
	// throttle.Policy .....5..............................1.1.1.1.1.
	// SlidingWindow   .....5..............................1.1.1.1.1.
	// FixedWindow     .....55.............................1.1.1.1.1.
	// TokenBucket     .....5......1.....1.....1.....1.....1.....1...
	// LeakyBucket     .....1.....1.....1.....1.....1.....1.....1....
}

func picture() string {
	minute := throttle.Tier{Name: "minute", Limit: 5, Window: time.Minute.Milliseconds()}
	return draw("asked", func(int64) (bool, int64) { return true, 0 }) +
		draw("throttle.Policy", exactly(minute)) +
		draw("SlidingWindow", counting(meter.NewSlidingWindow(minute, 0))) +
		draw("FixedWindow", counting(meter.NewFixedWindow(minute))) +
		draw("TokenBucket", counting(meter.NewTokenBucket(minute, 0))) +
		draw("LeakyBucket", counting(meter.NewLeakyBucket(minute, 4)))
}

// draw asks and notes in which column each send leaves that is admitted.
func draw(name string, take func(now int64) (admitted bool, delay int64)) string {
	const columns, column = 46, 2000
	leave := make([]int, columns)
	send := func(ms int64) {
		if admitted, delay := take(noon + ms); admitted && (ms+delay)/column+6 < columns {
			leave[(ms+delay+6*column)/column]++
		}
	}
	for i := range int64(10) {
		send(i/5*column - column)
	}
	for ms := int64(4000); ms < (columns-6)*column; ms += 4000 {
		send(ms)
	}
	line := fmt.Sprintf("%-16s", name)
	for _, n := range leave {
		line += strings.ReplaceAll(fmt.Sprint(n), "0", ".")
	}
	return line + "\n"
}

func exactly(t throttle.Tier) func(now int64) (bool, int64) {
	policy, err := throttle.NewPolicy(t)
	if err != nil {
		panic(err)
	}
	var h throttle.History
	return func(now int64) (bool, int64) {
		v := throttle.Decide(policy, h, now)
		if v.Allowed {
			h = h.With(policy, throttle.NewID(), now)
		}
		return v.Allowed, 0
	}
}

func counting[M meter.Meter](m M, err error) func(now int64) (bool, int64) {
	if err != nil {
		panic(err)
	}
	var s meter.State
	return func(now int64) (bool, int64) {
		v, _ := m.Take(&s, throttle.NewID(), now)
		return v.Allowed, v.Delay
	}
}
