package wire_test

import (
	"fmt"
	"time"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/throttle"
)

// What a mailbox that was mailed at noon is told five seconds later.
func Example() {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	policy, err := throttle.ParsePolicy("minute=1/60s,hour=5/1h")
	if err != nil {
		fmt.Println(err)
		return
	}
	state, _ := policy.Take(nil, throttle.Admission{ID: throttle.NewID(), At: noon})
	verdict := policy.Peek(state, noon+5000)

	limits := wire.Limits(&verdict, "a hash")
	fmt.Println(string(wire.Encode(wire.NewVerdict("mailbox", &verdict, limits))))
	fmt.Println(wire.Reached(&verdict, "this mailbox"))
	fmt.Println(wire.RateLimit(limits))
	// Output:
	// {"rule":"mailbox","limit":"minute","wait_ms":55000,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:05.000Z","limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":55000},{"name":"hour","limit":5,"window_ms":3600000,"remaining":4,"wait_ms":0}],"degraded":false}
	// The minute limit of this mailbox is reached. Try again in 55 s.
	// "minute";r=0;t=55;pk=:YSBoYXNo:, "hour";r=4;t=3595;pk=:YSBoYXNo:
}
