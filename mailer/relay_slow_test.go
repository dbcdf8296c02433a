package mailer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/mailer/sandbox/fault"
)

// TestSlowRecipientsLeaveRoom: sixty at once, each at a domain of its own, whose
// servers never answer the relay. Whoever comes after them waits for one step
// and not for all of theirs, and the breaker stays closed, whether or not the
// relay answers MAIL apart from RCPT.
func TestSlowRecipientsLeaveRoom(t *testing.T) {
	for name, script := range map[string]fault.Script{
		"one by one": {NoPipelining: true}, "in a group": {}, "answers held back": {HoldBack: true},
	} {
		t.Run(name, func(t *testing.T) {
			script.At, script.Kind, script.To = fault.RCPT, fault.Silence, "slow"
			s := play(t, script)
			o := steady()
			o.MaxConns = 8
			o.RCPTTimeout = 3 * time.Second
			o.Deadline = 10 * hanging
			o.Breaker = mailer.Breaker{Failures: 1, Cooldown: time.Hour}
			r := newRelays(t, o, plain(s))
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			for n := range 60 {
				group.Go(func() {
					_, err := r.Send(ctx, to(fmt.Sprintf("slow%d.example", n)))
					checkOutcome(t, err, mailer.Unavailable)
				})
			}
			eventually(t, "they hold every connection", func() bool { return r.Stats()[0].Waiting == 52 })
			for range 3 {
				began := time.Now()
				mustSend(t, r, to("honest.example"))
				if took := time.Since(began); took >= o.RCPTTimeout {
					t.Errorf("a bystander's mail took %v, want less than one patience for RCPT, %v", took, o.RCPTTimeout)
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
