package mailer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/servertest"
)

// TestSlowRecipientsLeaveRoom: sixty at once, each at a domain of its own, whose
// servers never answer the relay. A stranger who comes after them waits for one
// step and not for all of theirs; whose domain is known waits for nobody. And the
// breaker stays closed, whether or not the relay answers MAIL apart from RCPT.
func TestSlowRecipientsLeaveRoom(t *testing.T) {
	for name, script := range map[string]fault.Script{
		"one by one": {NoPipelining: true}, "in a group": {}, "answers held back": {HoldBack: true},
	} {
		t.Run(name, func(t *testing.T) {
			script.At, script.Kind, script.To = fault.RCPT, fault.Silence, "slow"
			s := play(t, script)
			o := steady()
			o.MaxConns = 8
			o.RCPTTimeout = 5 * time.Second
			o.Deadline = 10 * hanging
			o.Breaker = mailer.Breaker{Failures: 1, Cooldown: time.Hour}
			r := newRelays(t, o, plain(s))
			mustSend(t, r, to("known.example"))
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			for n := range 60 {
				group.Go(func() {
					_, err := r.Send(ctx, to(fmt.Sprintf("slow%d.example", n)))
					checkOutcome(t, err, mailer.Unavailable)
				})
			}
			servertest.Eventually(t, "they hold every connection that strangers may", func() bool {
				stats := r.Stats()[0]
				return stats.Waiting == 54 && stats.Open-stats.Idle == 6
			})
			for i, domain := range []string{"new.example", "newer.example", "known.example"} {
				most := o.RCPTTimeout
				if domain == "known.example" {
					most = o.RCPTTimeout / 5 // what the most hurried of the others hold theirs for
				}
				began := time.Now()
				mustSend(t, r, to(domain))
				if took := time.Since(began); took >= most {
					t.Errorf("the %d. bystander's mail took %v, want less than %v", i+1, took, most)
				}
			}
			if got := r.Stats()[0]; got.Resting || got.Waiting == 0 {
				t.Errorf("%+v: want the breaker closed, and those who are slow still in line", got)
			}
			cancel()
			group.Wait()
		})
	}
}
