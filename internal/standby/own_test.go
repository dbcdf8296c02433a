package standby_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// disk is the node's own limiter on a disk with faults.
type disk struct {
	throttle.Limiter
	fails atomic.Bool
	hangs atomic.Pointer[chan struct{}] // until it is closed
}

func (d *disk) Record(ctx context.Context, key string, all ...throttle.Admission) error {
	if until := d.hangs.Load(); until != nil {
		<-*until
	}
	if d.fails.Load() {
		return throttle.Unavailable("record", errors.New("no room is left"))
	}
	return d.Limiter.Record(ctx, key, all...)
}

// onFaultyDisk has the node's mailbox limiter record on a disk with faults.
func (n *node) onFaultyDisk(t testing.TB) *disk {
	t.Helper()
	d := &disk{Limiter: n.own}
	n.mailbox = n.Limiter("mailbox", tiers, onRedis(t, n.client, "mailbox", tiers), d)
	return d
}

func TestMirror_Fails_NotAloneUntilItCountsNoMore(t *testing.T) {
	server := redistest.Alone(t)
	dir := t.TempDir()
	n := open(t, dir, server.URL())
	n.onFaultyDisk(t).fails.Store(true)
	n.admit(t, "alice", false)
	until := n.State().Incomplete
	if rest := until - n.clock.Now(); n.State().Unrecorded != 1 || rest < 23*hour || rest > 24*hour {
		t.Errorf("not alone for %d ms, %d unrecorded", rest, n.State().Unrecorded)
	}
	server.Kill()
	for range 2 {
		n.awaitAlone(t)
		_, err := n.mailbox.Take(t.Context(), "bob", throttle.NewID())
		unavailable(t, err)
		unavailable(t, n.Ready(t.Context()))
		n.end()
		if n = open(t, dir, server.URL()); n.State().Incomplete != until {
			t.Errorf("after a restart the node goes on alone from %d, want %d", n.State().Incomplete, until)
		}
	}
}

// A disk that hangs holds up the first send for a second, and the others hardly; the node does not
// go on alone before the disk has taken all.
func TestMirror_Hangs_SendsGoOn(t *testing.T) {
	server := redistest.Alone(t)
	n := start(t, server.URL())
	d, taken := n.onFaultyDisk(t), make(chan struct{})
	d.hangs.Store(&taken)
	began := time.Now()
	for i := range 10 {
		n.admit(t, fmt.Sprint("key", i), false)
	}
	if took := time.Since(began); took < time.Second || took > 3*time.Second {
		t.Errorf("ten sends took %v", took)
	}
	server.Kill()
	n.awaitAlone(t)
	_, err := n.mailbox.Take(t.Context(), "key1", throttle.NewID())
	unavailable(t, err)
	d.hangs.Store(nil)
	close(taken)
	servertest.Eventually(t, "the disk to take all", func() bool {
		_, err := n.mailbox.Take(context.Background(), "other", throttle.NewID())
		return err == nil
	})
	if v := n.take(t, "key1"); !v.Allowed || v.Sent != 2 {
		t.Errorf("admitted %v, sent %d, want the second", v.Allowed, v.Sent)
	}
}
