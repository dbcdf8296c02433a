package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
)

// TestAFloodingCallerLeavesRoom: one caller asks for as many mails at once as it
// can. Each mail of another goes out in its turn, and none is turned away, though
// the line is full, with and without a pace.
func TestAFloodingCallerLeavesRoom(t *testing.T) {
	const conns = 2
	for name, pace := range map[string]mailer.Pace{"connections": {}, "pace": {PerSecond: 100, Queue: 8}} {
		t.Run(name, func(t *testing.T) {
			s := play(t, fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: time.Millisecond})
			o := steady()
			o.MaxConns, o.MaxConnsPerDomain, o.MaxWaiting, o.Pace = conns, conns, 8, pace
			r := newRelays(t, o, plain(s))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			turnedAway := flood(ctx, t, r, 40)
			turnedAway(1)
			var others []int
			for n := range 10 {
				before := len(s.Mails())
				m := to(fmt.Sprintf("other%d.example", n))
				m.Caller = "other"
				mustSend(t, r, m)
				others = append(others, len(s.Mails())-before-1)
			}
			slices.Sort(others) // on a busy machine some go before it was even sent
			if others[len(others)/2] > 3*conns {
				t.Errorf("so many mails of the flood went before one of the other: %v, want a round of turns", others)
			}
			cancel()
		})
	}
}

// flood sends from so many goroutines, again and again, until ctx ends. The
// returned function waits until so many of them were turned away.
func flood(ctx context.Context, t *testing.T, r *mailer.Relays, width int) (turnedAway func(int)) {
	var group sync.WaitGroup
	away := make(chan struct{}, width)
	for n := range width {
		group.Go(func() {
			m := to(fmt.Sprintf("flood%d.example", n))
			m.Caller = "flood"
			for ctx.Err() == nil {
				if _, err := r.Send(ctx, m); errors.Is(err, mailer.ErrBusy) {
					select {
					case away <- struct{}{}:
					default:
					}
					<-time.After(time.Millisecond)
				} else if err != nil && ctx.Err() == nil {
					t.Errorf("the flood: %v", err)
				}
			}
		})
	}
	t.Cleanup(group.Wait)
	return func(n int) {
		for range n {
			select {
			case <-away:
			case <-time.After(hanging):
				t.Fatal("the flood fills no line")
			}
		}
	}
}
