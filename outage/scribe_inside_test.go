package outage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// A hanging history ends no write before it is told to, and then with what it is told.
type hanging struct {
	throttle.Recorder
	writes   atomic.Int64 // that were begun
	ends     chan error
	recorded atomic.Int64 // less what was given back
}

func (h *hanging) Record(context.Context, string, throttle.Admission) error {
	h.writes.Add(1)
	err := <-h.ends
	if err == nil {
		h.recorded.Add(1)
	}
	return err
}

func (h *hanging) Release(context.Context, string, throttle.ID) (bool, error) {
	h.writes.Add(1)
	err := <-h.ends
	if err == nil {
		h.recorded.Add(-1)
	}
	return err == nil, err
}

// A generous history admits everything.
type generous struct{ throttle.Recorder }

func (generous) Take(context.Context, string, throttle.ID) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: true, Now: 5}, nil
}

func (generous) Release(context.Context, string, throttle.ID) (bool, error) { return true, nil }

// A hung node is one whose disk hangs, beside a shared history that is well.
type hung struct {
	*Limiter
	t   *testing.T
	own *hanging
	log *strings.Builder // to be read when the watch is closed
}

func openHung(t *testing.T) *hung {
	t.Helper()
	n := &hung{t: t, own: &hanging{ends: make(chan error)}, log: new(strings.Builder)}
	w, err := NewWatch(Options{
		Disk: cachetest.Open(t, cache.Memory), Away: unavailableIsAway, Shared: func(context.Context) error { return nil },
		Now: func() int64 { return 5 }, Pause: time.Millisecond, Log: slog.New(slog.NewTextHandler(n.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.scribe.patience = 10 * time.Millisecond
	n.Limiter = w.Limiter("mailbox", 100, generous{}, n.own)
	w.Start()
	t.Cleanup(n.stop)
	return n
}

func (n *hung) stop() { n.watch.Close(context.Background()) }

func (n *hung) await(what string, done func() bool) {
	n.t.Helper()
	servertest.Eventually(n.t, what, done)
}

// soon fails the test if something does not end by itself.
func soon(t *testing.T, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a disk that hangs")
	}
}

func (n *hung) takes(key string, id throttle.ID) {
	n.t.Helper()
	soon(n.t, func() error {
		v, err := n.Take(context.Background(), key, id)
		if err == nil && !v.Allowed {
			return errors.New("it is refused")
		}
		return err
	})
}

// A disk that hangs holds up no send that the shared history admits. The own history lacks it
// until it is noted, at the first attempt or at another.
func TestNobodyWaitsForADiskThatHangs(t *testing.T) {
	for name, first := range map[string]error{"noted late": nil, "noted again": cache.ErrFull} {
		t.Run(name, func(t *testing.T) {
			n := openHung(t)
			n.takes("alice", throttle.NewID())
			if s := n.watch.State(); n.whole() || s.Unnoted != 1 {
				t.Errorf("whole: %t, and %d are counted", n.whole(), s.Unnoted)
			}
			n.own.ends <- first
			if first != nil {
				n.own.ends <- nil
			}
			n.await("it to be noted", n.whole)
			if got := n.own.recorded.Load(); got != 1 {
				t.Errorf("noted are %d", got)
			}
			n.stop()
			if log := n.log.String(); strings.Count(log, "takes too long") != 1 || strings.Count(log, "has noted all") != 1 {
				t.Errorf("the log has %s", log)
			}
		})
	}
}

// What is given back while the disk hangs is not on record when it does so no more.
func TestGivenBackWhileTheDiskHangs(t *testing.T) {
	n := openHung(t)
	id := throttle.NewID()
	n.takes("alice", id)
	soon(t, func() error { _, err := n.Release(context.Background(), "alice", id); return err })
	n.await("both to be begun", func() bool { return n.own.writes.Load() == 2 })
	close(n.own.ends)
	n.await("an end", func() bool { return n.own.recorded.Load() <= 0 && !n.watch.scribe.hangs() && n.whole() })
}

// Of more than a few the disk is not asked while it hangs, and of all of them afterwards.
func TestFewAreUnderWay(t *testing.T) {
	n := openHung(t)
	const sends = mostUnderWay + 10
	for i := range sends {
		n.takes(fmt.Sprint(i), throttle.NewID())
	}
	if begun := n.own.writes.Load(); begun > mostUnderWay || n.watch.State().Unnoted != sends {
		t.Errorf("%d are under way, and %d are counted", begun, n.watch.State().Unnoted)
	}
	close(n.own.ends)
	n.await("all to be noted", n.whole)
	if got := n.own.recorded.Load(); got != sends {
		t.Errorf("noted are %d of %d", got, sends)
	}
}

// A hanging keeper ends nothing before ends is closed.
type hangingKeeper struct {
	OwnKeeper
	ends chan struct{}
}

func (k *hangingKeeper) BeginAs(ctx context.Context, lease idempotency.Lease) (idempotency.Outcome, error) {
	<-k.ends
	return k.OwnKeeper.BeginAs(ctx, lease)
}

func (k *hangingKeeper) FinishFor(ctx context.Context, lease idempotency.Lease, a idempotency.Answer, keep int64) (bool, error) {
	<-k.ends
	return k.OwnKeeper.FinishFor(ctx, lease, a, keep)
}

func (k *hangingKeeper) Abandon(ctx context.Context, lease idempotency.Lease) (bool, error) {
	<-k.ends
	return k.OwnKeeper.Abandon(ctx, lease)
}

func (k *hangingKeeper) Look(ctx context.Context, _ idempotency.Lease) (o idempotency.Outcome, known bool, err error) {
	<-ctx.Done()
	return o, false, ctx.Err()
}

// Nor does it hold up a request that the shared keeper answers for.
func TestNoRequestWaitsForADiskThatHangs(t *testing.T) {
	b := openBeginner(t, time.Millisecond)
	own := &hangingKeeper{b.own, make(chan struct{})}
	b.watch.scribe.patience = time.Millisecond
	k := b.watch.Keeper("answers", b.terms, openBeginner(t, 0).own, own)
	k.until.Store(0) // nothing is here, from before
	ctx, name := context.Background(), func(key string) idempotency.Name { return idempotency.Name{Caller: "shop", Key: key} }
	soon(t, func() error {
		o, err := k.Begin(ctx, name("1"), idempotency.Fingerprint{})
		if err != nil {
			return err
		}
		kept, err := k.Finish(ctx, o.Lease, idempotency.Answer{Status: 200})
		if err == nil && !kept {
			return errors.New("the answer is not kept")
		}
		return err
	})
	soon(t, func() error {
		if _, err := k.Begin(ctx, name("2"), idempotency.Fingerprint{}); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("looked for in vain: %w", err)
		}
		return nil
	})
	soon(t, func() error {
		lease := idempotency.Lease{Name: name("1"), Token: idempotency.NewToken()}
		if _, err := k.Abandon(ctx, lease); !errors.Is(err, errHangs) || !errors.Is(err, idempotency.ErrUnavailable) {
			return fmt.Errorf("abandoned: %w", err)
		}
		return nil
	})
	if s := b.watch.State(); s.Unnoted != 2 {
		t.Errorf("%d are counted", s.Unnoted)
	}
	close(own.ends)
	servertest.Eventually(t, "the disk to answer", func() bool { return !b.watch.scribe.hangs() })
}
