package outage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const alice = "alice@example.com"

// opened is a node on a shared history, and the clock of both.
func opened(t *testing.T, tiers string) (*node, *clocktest.Clock) {
	t.Helper()
	clock := clocktest.New(start)
	p := throttletest.Policy(t, tiers)
	n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, nil)
	n.watch.Start()
	return n, clock
}

// What was admitted together still counts alone, and what was admitted alone counts
// together, at its own time.
func TestGoesOnAndComesBack(t *testing.T) {
	n, clock := opened(t, "minute=1/60s,hour=3/1h")
	first, second := throttle.NewID(), throttle.NewID()
	if v := n.take(alice, first); !v.Allowed || v.Degraded {
		t.Fatalf("together: %+v", v)
	}
	n.shared.set(silent)
	if v := n.take(alice, throttle.NewID()); v.Allowed || !v.Degraded || v.Limit != "minute" || v.Wait != 60_000 {
		t.Fatalf("alone, in the same minute: %+v", v)
	}
	clock.Add(60_000)
	if v := n.take(alice, second); !v.Allowed || !v.Degraded || v.Wait != 60_000 {
		t.Fatalf("alone, a minute later: %+v", v)
	}
	if v, err := n.Peek(context.Background(), alice); err != nil || v.Allowed || !v.Degraded {
		t.Fatalf("peek alone: %+v, %v", v, err)
	}
	if s := n.watch.State(); !s.Degraded || s.Since != start || s.Admitted != 1 || s.Debts != 2 {
		t.Errorf("in the outage: %+v", s)
	}
	clock.Add(90_000)
	n.shared.set(none)
	n.healthy()
	want := throttle.History{{ID: first, At: start}, {ID: second, At: start + 60_000}}
	if got := n.history(n.shared.Survey, alice); !slices.Equal(got, want) {
		t.Errorf("on record: %v, want %v", got, want)
	}
	if got := n.shared.records; len(got) != 1 {
		t.Errorf("told of %v", got)
	}
	if v := n.take(alice, throttle.NewID()); !v.Allowed || v.Degraded || v.Limit != "hour" {
		t.Errorf("together again: %+v", v)
	}
	if s := n.watch.State(); s.Since != 0 || s.Written != 1 || s.Admitted != 1 {
		t.Errorf("after the outage: %+v", s)
	}
}

// One line tells of the beginning and one of the end, and neither of whom.
func TestTellsOnce(t *testing.T) {
	n, clock := opened(t, "minute=1/60s,hour=9/1h")
	n.take(alice, throttle.NewID())
	n.shared.set(dead)
	for range 5 {
		clock.Add(60_000)
		n.take(alice, throttle.NewID())
	}
	n.shared.set(none)
	n.healthy()
	servertest.Eventually(t, "a word of the end", func() bool { return len(n.log.lines("is back")) > 0 })
	away, back := n.log.lines("is away"), n.log.lines("is back")
	if len(away) != 1 || !strings.Contains(away[0], "level=WARN") || !strings.Contains(away[0], "dead") {
		t.Errorf("of the beginning: %q", away)
	}
	if len(back) != 1 || !strings.Contains(back[0], "admitted_alone=5 written=5 expired=0 given_back=0") {
		t.Errorf("of the end: %q", back)
	}
	if all := n.log.lines("alice"); len(all) > 0 {
		t.Errorf("whom: %q", all)
	}
}

// The line of the end tells what became of all that was admitted alone.
func TestTellsWhatBecameOfThem(t *testing.T) {
	n, clock := opened(t, "minute=1/60s")
	n.shared.set(dead)
	n.take("old", throttle.NewID())
	clock.Add(60_000)
	back := throttle.NewID()
	n.take("back", back)
	if released, err := n.Release(context.Background(), "back", back); !released || err != nil {
		t.Fatalf("%v, %v", released, err)
	}
	n.take("kept", throttle.NewID())
	n.shared.set(none)
	n.healthy()
	servertest.Eventually(t, "a word of the end", func() bool { return len(n.log.lines("is back")) > 0 })
	if line := n.log.lines("is back")[0]; !strings.Contains(line, "admitted_alone=3 written=1 expired=1 given_back=1") {
		t.Errorf("%q", line)
	}
}

// A denial that is certain to be ours alone owes nothing, however often it is asked for.
func TestHammeringOwesNothing(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	n.shared.set(dead)
	n.take(alice, throttle.NewID())
	for range 1000 {
		n.take(alice, throttle.NewID())
	}
	if s := n.watch.State(); s.Debts != 1 {
		t.Errorf("%d debts", s.Debts)
	}
	n.shared.set(silent)
	for range 1000 {
		n.take(alice, throttle.NewID())
	}
	if s := n.watch.State(); s.Debts > 100 {
		t.Errorf("%d debts, where replies may have been lost", s.Debts)
	}
}

// The shared history admitted and the reply was lost: this node admits under the same id,
// and one is on record; or refuses, and the charge is given back.
func TestLostReplies(t *testing.T) {
	n, clock := opened(t, "minute=1/60s,hour=3/1h")
	n.shared.set(unheard)
	id := throttle.NewID()
	if v := n.take(alice, id); !v.Allowed {
		t.Fatalf("%+v", v)
	}
	n.shared.set(none)
	n.healthy()
	want := throttle.History{{ID: id, At: start}}
	if got := n.history(n.shared.Survey, alice); !slices.Equal(got, want) {
		t.Errorf("admitted twice: %v", got)
	}
	// Here the own history refuses what the shared one admits.
	const bob = "bob@example.com"
	if err := n.own.Record(context.Background(), bob, throttle.Admission{ID: throttle.NewID(), At: start}); err != nil {
		t.Fatal(err)
	}
	n.shared.set(unheard)
	if v := n.take(bob, throttle.NewID()); v.Allowed || !v.Degraded {
		t.Fatalf("%+v", v)
	}
	if got := n.history(n.shared.Survey, bob); len(got) != 1 {
		t.Fatalf("the shared history has %v", got)
	}
	clock.Add(1)
	n.shared.set(none)
	n.healthy()
	if got := n.history(n.shared.Survey, bob); len(got) != 0 {
		t.Errorf("a charge without a mail: %v", got)
	}
}

// A mail that failed is given back: what was admitted before the outage, in it, and what was
// written after it, whatever becomes of the replies.
func TestReleaseInAnOutage(t *testing.T) {
	for name, lost := range map[string]fault{"silent": silent, "unheard": unheard, "dead": dead} {
		t.Run(name, func(t *testing.T) {
			n, clock := opened(t, "minute=1/60s,hour=3/1h")
			ctx := context.Background()
			before, alone, kept := throttle.NewID(), throttle.NewID(), throttle.NewID()
			n.take(alice, before)
			n.shared.set(lost)
			if released, err := n.Release(ctx, alice, before); err != nil || !released {
				t.Fatalf("one from before: %v, %v", released, err)
			}
			if v := n.take(alice, alone); !v.Allowed {
				t.Fatalf("the place of the one that was given back: %+v", v)
			}
			if released, err := n.Release(ctx, alice, alone); err != nil || !released {
				t.Fatalf("one of the outage: %v, %v", released, err)
			}
			clock.Add(1000)
			n.take(alice, kept)
			if released, err := n.Release(ctx, alice, throttle.NewID()); err != nil || released {
				t.Fatalf("one that never was: %v, %v", released, err)
			}
			n.shared.set(none)
			n.healthy()
			want := throttle.History{{ID: kept, At: start + 1000}}
			if got := n.history(n.shared.Survey, alice); !slices.Equal(got, want) {
				t.Errorf("on record: %v, want %v", got, want)
			}
			if released, err := n.Release(ctx, alice, kept); err != nil || !released {
				t.Errorf("after the outage: %v, %v", released, err)
			}
			if got := n.history(n.shared.Survey, alice); len(got) != 0 {
				t.Errorf("on record: %v", got)
			}
		})
	}
}

// One is admitted alone while the shared history's yes to another is on its way. The other
// gives its place back, since the node would have admitted two.
func TestAdmittedAloneMeanwhile(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	one, other := throttle.NewID(), throttle.NewID()
	n.shared.during = func() {
		n.shared.set(dead)
		if v := n.take(alice, one); !v.Allowed || !v.Degraded {
			t.Errorf("alone: %+v", v)
		}
		n.shared.set(none)
	}
	if v := n.take(alice, other); v.Allowed {
		t.Errorf("a second one: %+v", v)
	}
	n.healthy()
	for name, h := range map[string]throttle.Historian{"shared": n.shared.Survey, "own": n.own} {
		if got := n.history(h, alice); len(got) != 1 || got[0].ID != one {
			t.Errorf("the %s history: %v", name, got)
		}
	}
}

// A reset needs the shared history, and then reaches what is still owed.
func TestReset(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	ctx := context.Background()
	n.shared.set(dead)
	n.take(alice, throttle.NewID())
	if _, err := n.Reset(ctx, alice); !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("without the shared history: %v", err)
	}
	if v := n.take(alice, throttle.NewID()); v.Allowed {
		t.Fatal("the reset that failed has changed something")
	}
	n.shared.set(none)
	servertest.Eventually(t, "a reset", func() bool { cleared, err := n.Reset(ctx, alice); return err == nil && cleared == 1 })
	if got := n.history(n.own, alice); len(got) != 0 {
		t.Errorf("of its own: %v", got)
	}
	n.healthy()
	if v := n.take(alice, throttle.NewID()); !v.Allowed {
		t.Errorf("after the reset: %+v", v)
	}
}

// Who gives up learns nothing of the shared history.
func TestCallerGivesUp(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := n.Take(ended, alice, throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if s := n.watch.State(); s.Degraded {
		t.Error("an outage")
	}
}

// What has left the longest window is not written any more.
func TestOldDebtsAreDropped(t *testing.T) {
	n, clock := opened(t, "minute=1/60s")
	n.shared.set(dead)
	n.take(alice, throttle.NewID())
	clock.Add(60_000)
	n.shared.set(none)
	n.healthy()
	if len(n.shared.records) != 0 {
		t.Errorf("written: %v", n.shared.records)
	}
}

// Views of one name share debts, and the one made last writes them.
func TestViews(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	other := n.watch.Limiter("mailbox", 60_000, n.shared, n.own)
	n.shared.set(dead)
	n.take(alice, throttle.NewID())
	n.shared.set(none)
	if v, err := other.Take(context.Background(), alice, throttle.NewID()); err != nil || v.Allowed {
		t.Errorf("%+v, %v", v, err)
	}
}

// What is wrong on record is no outage.
func TestWrongIsNotAway(t *testing.T) {
	clock := clocktest.New(start)
	p := throttletest.Policy(t, "minute=1/60s")
	n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, func(o *outage.Options) {
		o.Away = func(error) bool { return false }
	})
	n.shared.set(dead)
	if _, err := n.Take(context.Background(), alice, throttle.NewID()); !errors.Is(err, errDead) {
		t.Fatalf("%v", err)
	}
	if n.watch.State().Degraded {
		t.Error("an outage")
	}
}
