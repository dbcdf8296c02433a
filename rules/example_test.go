package rules_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A mailbox gets one mail a minute, and a visitor two, whomever they are for. What one rule
// refuses costs the other nothing, and a mail that never left is given back.
func ExampleSet() {
	clock := func() int64 { return 1_800_000_000_000 } // a program leaves Now out
	perVisitor, err := meter.NewFixedWindow(throttle.Tier{Name: "minute", Limit: 2, Window: time.Minute.Milliseconds()})
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := rules.New(rules.Options{},
		rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: memory.NewTiers(throttle.DefaultPolicy(), memory.Options{Now: clock})},
		rules.Rule{Name: "visitor", By: rules.ByClientIP, Limiter: memory.New(perVisitor, memory.Options{Now: clock})})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, visitor := context.Background(), netip.MustParseAddr("192.0.2.1")
	for _, mailbox := range []string{"alice@example.com", "alice@example.com", "bob@example.com", "carol@example.com"} {
		send, id := rules.Send{Mailbox: mailbox, Client: visitor}, throttle.NewID()
		d, err := set.Take(ctx, send, id)
		switch {
		case err != nil:
			fmt.Println(err)
			return
		case !d.Allowed:
			fmt.Println(mailbox, "waits", time.Duration(d.Verdict.Wait)*time.Millisecond, "for rule", d.Rule)
			continue
		}
		fmt.Println(mailbox, "is mailed")
		if mailbox == "bob@example.com" { // whose relay was down
			fmt.Println("  or not:", set.Release(ctx, send, id))
		}
	}
	// Output:
	// alice@example.com is mailed
	// alice@example.com waits 1m0s for rule mailbox
	// bob@example.com is mailed
	//   or not: <nil>
	// carol@example.com is mailed
}
