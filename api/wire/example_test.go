package wire_test

import (
	"fmt"
	"time"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/throttle"
	"github.com/valyala/fasthttp"
)

// What a mailbox that was mailed at noon is told five seconds later.
func Example() {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	policy, err := throttle.ParsePolicy("minute=1/60s,hour=5/1h")
	if err != nil {
		fmt.Println(err)
		return
	}
	state, _, _ := policy.Take(nil, throttle.Admission{ID: throttle.NewID(), At: noon})
	verdict := policy.Peek(state, noon+5000)

	limits := wire.AppendLimits(nil, &verdict, "")
	b := append([]byte(nil), '{')
	b = wire.AppendVerdict(b, &verdict, limits)
	b = append(wire.AppendViolated(append(b, ','), limits), '}')
	fmt.Println(string(b))
	fmt.Println(string(wire.AppendReached(nil, &verdict, "this mailbox", "The next mail may be sent")))

	var header fasthttp.ResponseHeader
	wire.SetRateLimit(&header, nil, limits)
	header.VisitAll(func(name, value []byte) {
		if string(name) != "Content-Type" {
			fmt.Printf("%s: %s\n", name, value)
		}
	})
	// Output:
	// {"limit":"minute","wait_ms":55000,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:05.000Z","limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":55000},{"name":"hour","limit":5,"window_ms":3600000,"remaining":4,"wait_ms":0}],"degraded":false,"violated-policies":["minute"]}
	// "The limit minute of this mailbox is reached. The next mail may be sent in 55 s."
	// RateLimit-Policy: "minute";q=1;w=60, "hour";q=5;w=3600
	// RateLimit: "minute";r=0;t=55, "hour";r=4;t=3595
}

func ExampleAppendProblem() {
	b := wire.AppendProblem(nil, wire.Ours, "busy", "Too many sends are waiting", 503)
	b = append(wire.AppendString(b, "Try again later."), '}')
	fmt.Println(string(b))
	// Output:
	// {"type":"urn:mailgate:problem:busy","title":"Too many sends are waiting","status":503,"detail":"Try again later."}
}
