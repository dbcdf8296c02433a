package rules_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
)

// A mailbox gets one mail a minute, and a visitor can ask for two, for any mailboxes.
func ExampleSet() {
	clock := func() int64 { return 1_800_000_000_000 } // a program leaves it out
	store, err := cache.Open(cache.Options{Now: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	visitors, err := throttle.NewFixedWindow(throttle.Tier{Name: "minute", Limit: 2, Window: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	set, err := rules.New(rules.Options{},
		rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: local.New(store.Table("mailbox"), throttle.DefaultPolicy())},
		rules.Rule{Name: "visitor", By: rules.ByClientIP, Limiter: local.New(store.Table("visitor"), visitors)})
	if err != nil {
		log.Fatal(err)
	}

	ctx, visitor := context.Background(), netip.MustParseAddr("192.0.2.1")
	for _, mailbox := range []string{"alice@example.com", "alice@example.com", "bob@example.com", "carol@example.com"} {
		d, err := set.Take(ctx, rules.Send{Mailbox: mailbox, Client: visitor}, throttle.NewID())
		switch {
		case err != nil:
			log.Fatal(err)
		case !d.Allowed:
			fmt.Println(mailbox, "waits", time.Duration(d.Verdict.Wait)*time.Millisecond, "for rule", d.Rule)
		case mailbox == "bob@example.com": // the relay is down
			_, err := set.Release(ctx, d.Charges)
			fmt.Println(mailbox, "is refunded:", err)
		default:
			fmt.Println(mailbox, "is mailed")
		}
	}
	// Output:
	// alice@example.com is mailed
	// alice@example.com waits 1m0s for rule mailbox
	// bob@example.com is refunded: <nil>
	// carol@example.com is mailed
}
