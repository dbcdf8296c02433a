package cluster

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// A step that is repeated, since its answer was lost, waits for the replicas as the first
// would have.
func TestRepeatedIsConfirmed(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	store, err := redisstore.Open(redisstore.Options{URL: master.URL(), Confirm: 1, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	keeper, err := New(store, idempotency.DefaultTerms())
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]*redisstore.Script{"begin": beginScript, "finish": finishScript, "abandon": abandonScript} {
		lease := idempotency.Lease{Name: idempotency.Name{Caller: "website", Key: name}, Token: idempotency.NewToken()}
		step := func(script *redisstore.Script, with string) (byte, error) {
			a, err := keeper.step(context.Background(), name, lease.Name, func(call redisstore.Call) (redisstore.Answer, error) {
				text := leaseText(lease)
				if script == finishScript {
					text = append(text, "the answer"...)
				}
				return call.ChangeLate(script, text, with)
			})
			return a.Letter, err
		}
		insist := func(script *redisstore.Script, with string) {
			t.Helper()
			var letter byte
			err := idempotency.ErrUnavailable
			for range 100 { // until the replica is there
				if letter, err = step(script, with); err == nil {
					break
				}
			}
			if letter != done || err != nil {
				t.Fatalf("%s: %c, %v", name, letter, err)
			}
		}
		with := "60000"
		insist(beginScript, with)
		if script == abandonScript {
			with = "sixteen letters."
		}
		insist(script, with)
		replica.Pause()
		if letter, err := step(script, with); err == nil {
			t.Errorf("%s, repeated without a replica: %c", name, letter)
		}
		replica.Resume()
		// Some servers' WAIT is for what all have written, so that it does not tell.
		ctx := context.Background()
		key := master.Client().Keys(ctx, "*"+name).Val()[0]
		master.Client().Persist(ctx, key)
		insist(script, with)
		if master.Client().PTTL(ctx, key).Val() < 0 {
			t.Errorf("%s, repeated, writes nothing", name)
		}
	}
}
