package outage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

func TestTake_ReplyIsLate_RefusesAndGivesBack(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	ctx, id := context.Background(), throttle.NewID()
	n.shared.set(late)
	if v, err := n.Take(ctx, alice, id); !errors.Is(err, throttle.ErrUnavailable) || errors.Is(err, throttle.ErrUnchanged) {
		t.Fatalf("take: %+v, %v", v, err)
	}
	if v, err := n.Peek(ctx, alice); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("peek: %+v, %v", v, err)
	}
	if err := n.watch.Ready(ctx, func(context.Context) error { return nil }); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("ready: %v", err)
	}
	if s := n.watch.State(); s.Degraded || s.Admitted != 0 {
		t.Errorf("an outage: %+v", s)
	}
	if _, err := n.Release(ctx, alice, id); err != nil {
		t.Fatalf("release: %v", err)
	}
	n.shared.set(none)
	servertest.Eventually(t, "the release to be told", func() bool { return n.watch.State().Debts == 0 })
	if sends := n.history(n.shared.Survey, alice); len(sends) != 0 {
		t.Errorf("still charged: %v", sends)
	}
	if v := n.take(alice, throttle.NewID()); !v.Allowed || v.Degraded {
		t.Errorf("afterwards: %+v", v)
	}
}

// A key about which the shared history is still to be told something is not decided alone for
// that, unless it was admitted in an outage.
func TestTake_ReleaseOwedAndReplyIsLate_Refuses(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	ctx, id := context.Background(), throttle.NewID()
	n.take(alice, id)
	n.shared.set(late)
	if _, err := n.Release(ctx, alice, id); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if v, err := n.Take(ctx, alice, throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if s := n.watch.State(); s.Degraded || s.Admitted != 0 {
		t.Errorf("an outage: %+v", s)
	}
}

func TestKeeper_ReplyIsLate_BeginsNothingAndKeepsTheAnswer(t *testing.T) {
	o := openOffice(t)
	lease := o.begin(o, idempotency.Started).Lease
	o.there.set(late)
	other := idempotency.Name{Caller: "app", Key: "other"}
	if out, err := o.Begin(context.Background(), other, idempotency.Fingerprint{}); !errors.Is(err, idempotency.ErrUnavailable) {
		t.Errorf("begin: %+v, %v", out, err)
	}
	o.finish(lease)
	o.begin(o, idempotency.Replay)
	o.back()
	o.begin(o.there.Keeper, idempotency.Replay)
}

func TestBook_ReplyIsLate_DecidesNothing(t *testing.T) {
	d := openDesk(t)
	h := verify.Hash{1}
	d.there.set(late)
	if err := d.Add(context.Background(), alice, h, 60_000); !errors.Is(err, verify.ErrMayBeRight) {
		t.Errorf("add: %v", err)
	}
	if r, err := d.Check(context.Background(), alice, h); !errors.Is(err, verify.ErrUnavailable) {
		t.Errorf("check: %v, %v", r, err)
	}
	if d.watch.State().Degraded {
		t.Error("an outage")
	}
}
