package outage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// One reply of a healthy Redis that comes too late, or is lost, is no outage: the send is refused,
// what Redis has charged is given back, and the next send is decided together.
func TestTake_OneReplyIsLate_RefusesAndGoesOnTogether(t *testing.T) {
	for name, fault := range map[string]func(line *redistest.FaultyProxy){
		"lost": func(line *redistest.FaultyProxy) { line.DropReplies(1, "evalsha") },
		"late": func(line *redistest.FaultyProxy) { line.Delay(timeout * 13 / 10) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := redistest.Proxy(t, redistest.Alone(t).Addr)
			n := openPeer(t, line.URL(), throttletest.Policy(t, "day=1/24h"))
			n.take("somebody@example.com")
			ctx, id := context.Background(), throttle.NewID()
			fault(line)
			v, err := n.Take(ctx, alice, id)
			if !errors.Is(err, throttle.ErrUnavailable) || errors.Is(err, throttle.ErrUnchanged) {
				t.Fatalf("%+v, %v", v, err)
			}
			line.Pass()
			if _, err := n.Release(ctx, alice, id); err != nil {
				t.Fatal(err)
			}
			servertest.Eventually(t, "nothing to be owed", func() bool { return n.watch.State().Debts == 0 })
			n.send(alice, false)
			n.onRecord()
			if s := n.watch.State(); s.Degraded || s.Admitted != 0 {
				t.Errorf("an outage: %+v", s)
			}
		})
	}
}
