package outage_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// failing cannot note what others admitted.
type failing struct {
	*local.Limiter
	broken atomic.Bool
}

func breaking(own *local.Limiter) *failing {
	f := &failing{Limiter: own}
	f.broken.Store(true)
	return f
}

func (f *failing) Record(ctx context.Context, key string, a throttle.Admission) error {
	if f.broken.Load() {
		return throttle.Unavailable("record", cache.ErrFull)
	}
	return f.Limiter.Record(ctx, key, a)
}

// A history that may lack an admission is not gone on with until that has left its windows;
// the sends themselves go through.
func TestOwnHistoryWithGaps(t *testing.T) {
	clock := clocktest.New(start)
	p := throttletest.Policy(t, "minute=1/60s,hour=3/1h")
	n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, nil)
	own := breaking(n.own)
	limiter := n.watch.Historian("mailbox", p.Longest(), n.shared, own)
	ctx := context.Background()
	for _, key := range []string{"a", "b"} {
		if v, err := limiter.Take(ctx, key, throttle.NewID()); err != nil || !v.Allowed || v.Degraded {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if lines := n.log.lines("cannot be noted"); len(lines) != 1 || n.watch.State().Unnoted != 2 {
		t.Errorf("%d are counted, and the log has %q", n.watch.State().Unnoted, lines)
	}
	well := func(context.Context) error { return nil }
	if err := n.watch.Ready(ctx, well); err != nil {
		t.Errorf("while the shared history answers: %v", err)
	}
	own.broken.Store(false)
	n.shared.set(dead)
	clock.Add(3_600_000 - 1)
	const gaps = "what this node has noted has gaps"
	if _, err := limiter.Take(ctx, "c", throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || !strings.Contains(err.Error(), gaps) {
		t.Fatalf("with a history that may lack something: %v", err)
	}
	if _, err := limiter.Peek(ctx, "c"); !errors.Is(err, throttle.ErrUnavailable) || !strings.Contains(err.Error(), gaps) {
		t.Errorf("a look at it: %v", err)
	}
	if err := n.watch.Ready(ctx, well); err == nil || !strings.Contains(err.Error(), gaps) {
		t.Errorf("it refuses, and is ready or does not say why: %v", err)
	}
	if lines := n.log.lines("goes on with its own"); len(lines) != 0 {
		t.Errorf("the log has %q", lines)
	}
	if lines := n.log.lines("own records are incomplete"); len(lines) != 1 || !strings.Contains(lines[0], "level=ERROR") {
		t.Errorf("the log has %q", lines)
	}
	clock.Add(1)
	if err := n.watch.Ready(ctx, well); err != nil {
		t.Errorf("with a history without gaps: %v", err)
	}
	if v, err := limiter.Take(ctx, "c", throttle.NewID()); err != nil || !v.Allowed || !v.Degraded {
		t.Fatalf("%+v, %v", v, err)
	}
}

// Whoever runs here next knows of the gaps, and for how long.
func TestGapsOutliveTheProcess(t *testing.T) {
	clock, p, disk := clocktest.New(start), throttletest.Policy(t, "minute=1/60s,hour=3/1h"), cachetest.Open(t, cache.Memory)
	s := openShared(t, p, clock)
	n := openNode(t, s, disk, p, clock.Now, nil)
	own := breaking(n.own)
	limiter := n.watch.Historian("mailbox", p.Longest(), s, own)
	n.watch.Start()
	for range 2 { // of which the second counts for longer
		clock.Add(60_000)
		if v, err := limiter.Take(context.Background(), alice, throttle.NewID()); err != nil || !v.Allowed {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	n.close()
	n.own.Close()

	s.set(dead)
	n = openNode(t, s, disk, p, clock.Now, nil)
	clock.Add(3_600_000 - 1)
	if _, err := n.Take(context.Background(), alice, throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("with a history that lacks something: %v", err)
	}
	clock.Add(1)
	if v := n.take(alice, throttle.NewID()); !v.Allowed || !v.Degraded {
		t.Fatalf("%+v", v)
	}
}

// When the disk takes them again it is told of all that it could not take, with their times;
// then the node would go on alone as before, and so would whoever runs here next.
func TestGapsAreFilled(t *testing.T) {
	clock, p, disk := clocktest.New(start), throttletest.Policy(t, "minute=1/60s,hour=3/1h"), cachetest.Open(t, cache.Memory)
	s := openShared(t, p, clock)
	n := openNode(t, s, disk, p, clock.Now, nil)
	own := breaking(n.own)
	n.Historian = n.watch.Historian("mailbox", p.Longest(), s, own)
	kept := n.take("kept", throttle.NewID()).Now
	back := throttle.NewID()
	for key, id := range map[string]throttle.ID{"back": back, "reset": throttle.NewID()} {
		n.take(key, id)
	}
	ctx := context.Background()
	if released, err := n.Release(ctx, "back", back); !released || err != nil {
		t.Fatal(released, err)
	}
	if cleared, err := n.Reset(ctx, "reset"); cleared != 1 || err != nil {
		t.Fatal(cleared, err)
	}
	n.watch.Start()
	clock.Add(10_000)
	own.broken.Store(false)
	servertest.Eventually(t, "a history without gaps", func() bool { return len(n.log.lines("has noted all")) == 1 })

	s.set(dead)
	for range 2 {
		if v := n.take("kept", throttle.NewID()); v.Allowed || !v.Degraded || v.RetryAt() != kept+60_000 {
			t.Errorf("the mailbox that was sent a mail: %+v", v)
		}
		n.isFree("back")
		n.isFree("reset")
		n.close()
		n.own.Close()
		n = openNode(t, s, disk, p, clock.Now, nil)
	}
}

// isFree fails the test unless a key is admitted alone, and leaves it so.
func (n *node) isFree(key string) {
	n.t.Helper()
	id := throttle.NewID()
	if v := n.take(key, id); !v.Allowed || !v.Degraded {
		n.t.Errorf("%s: %+v", key, v)
	}
	if _, err := n.Release(context.Background(), key, id); err != nil {
		n.t.Error(err)
	}
}
