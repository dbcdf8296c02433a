package outage_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// A far history is one that each call takes a while to reach.
type far struct {
	line
	throttle.Recorder
}

func (f *far) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	return over(&f.line, throttle.ErrUnavailable, func() (throttle.Verdict, error) {
		time.Sleep(2 * time.Millisecond)
		return f.Recorder.Take(ctx, key, id)
	})
}

func (f *far) Record(ctx context.Context, key string, a throttle.Admission) error {
	return f.RecordAll(ctx, key, []throttle.Admission{a})
}

func (f *far) RecordAll(ctx context.Context, key string, all []throttle.Admission) error {
	return does(&f.line, throttle.ErrUnavailable, func() error {
		time.Sleep(2 * time.Millisecond)
		for _, a := range all {
			if err := f.Recorder.Record(ctx, key, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// A tally is a history that admits everything, and keeps only who.
type tally struct {
	throttle.Recorder
	mu  sync.Mutex
	has map[throttle.ID]bool
}

func newTally() *tally { return &tally{has: map[throttle.ID]bool{}} }

func (c *tally) Record(_ context.Context, _ string, a throttle.Admission) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.has[a.ID] = true
	return nil
}

func (c *tally) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	now := time.Now().UnixMilli()
	return throttle.Verdict{Allowed: true, Now: now}, c.Record(ctx, key, throttle.Admission{ID: id})
}

func (c *tally) Peek(context.Context, string) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: true}, nil
}

func (c *tally) Release(_ context.Context, _ string, id throttle.ID) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	had := c.has[id]
	delete(c.has, id)
	return had, nil
}

// A busy key is one that takes are never out of.
type busy struct {
	t        *testing.T
	limiter  *outage.Limiter
	admitted atomic.Int64
	alone    atomic.Int64
	end      chan struct{}
	takers   sync.WaitGroup
}

func (b *busy) begin(takers int) {
	for range takers {
		b.takers.Go(func() {
			for {
				select {
				case <-b.end:
					return
				default:
					b.take()
				}
			}
		})
	}
}

func (b *busy) take() {
	v, err := b.limiter.Take(context.Background(), "all", throttle.NewID())
	if err != nil || !v.Allowed {
		b.t.Errorf("%+v, %v", v, err)
		return
	}
	b.admitted.Add(1)
	if v.Degraded {
		b.alone.Add(1)
		time.Sleep(time.Millisecond) // else these would be many more than the others
	}
}

// What a busy key owes is paid while it goes on to be busy, all of it, and once. So an outage
// does not keep itself alive.
func TestABusyKeyPays(t *testing.T) {
	there := newTally()
	disk, way := cachetest.Open(t, cache.Memory), &far{Recorder: there}
	w, err := outage.NewWatch(outage.Options{
		Disk: disk, Away: unavailableIsAway, Shared: way.ready, Now: func() int64 { return time.Now().UnixMilli() }, Pause: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAtOnce(w) })
	b := &busy{t: t, limiter: w.Limiter("all", 2*years.Window, way, newTally()), end: make(chan struct{})}
	w.Start()
	b.take()
	way.set(dead)
	b.begin(24)
	servertest.Eventually(t, "many debts", func() bool { return w.State().Debts > 500 })
	way.set(none)
	awaitHealth(t, w)
	alone := b.alone.Load()
	together := b.admitted.Load() - alone
	servertest.Eventually(t, "the others", func() bool { return b.admitted.Load()-b.alone.Load() > together+100 })
	close(b.end)
	b.takers.Wait()
	awaitHealth(t, w)
	if s := w.State(); s.Written != s.Admitted || s.Admitted != b.alone.Load() {
		t.Errorf("%d were admitted alone, and counted are %+v", b.alone.Load(), s)
	}
	if got := int64(len(there.has)); got != b.admitted.Load() {
		t.Errorf("%d were admitted and %d are on record", b.admitted.Load(), got)
	}
}
