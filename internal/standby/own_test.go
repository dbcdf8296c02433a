package standby_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// disk is the home of the node's own limiter, with faults.
type disk struct {
	throttle.Home
	fails atomic.Bool
	hangs atomic.Pointer[chan struct{}] // until it is closed
}

func (d *disk) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	if op.Step != throttle.StepRecord {
		return d.Home.Do(ctx, key, op)
	}
	if until := d.hangs.Load(); until != nil {
		<-*until
	}
	if d.fails.Load() {
		return throttle.Reply{}, errors.New("no room is left")
	}
	return d.Home.Do(ctx, key, op)
}

// onFaultyDisk has the node's mailbox limiter record on a disk with faults.
func (n *node) onFaultyDisk(t testing.TB) *disk {
	t.Helper()
	d := &disk{Home: n.own.Home}
	n.mailbox = n.Limiter("mailbox", onRedis(t, n.client, "mailbox", tiers), throttle.New(tiers, d))
	return d
}

// A node whose records lack an admission does not continue alone, also after a restart, until the
// admission has left its window.
func TestMirror_Fails_NotAlone(t *testing.T) {
	server := redistest.Alone(t)
	dir := t.TempDir()
	n := open(t, dir, server.URL())
	n.onFaultyDisk(t).fails.Store(true)
	n.admit(t, "alice", false)
	if s := n.State(); s.Unrecorded != 1 || n.log.Count("not be recorded") != 1 {
		t.Errorf("%d unrecorded; the log is\n%s", s.Unrecorded, n.log.String())
	}
	server.Kill()
	for range 2 {
		n.awaitAlone(t)
		_, err := n.mailbox.Take(t.Context(), "bob")
		unavailable(t, err)
		unavailable(t, n.Ready(t.Context()))
		n.end()
		n = open(t, dir, server.URL())
	}
}

// A disk that hangs holds up each send for a second at most, and the node does not continue alone
// before the disk has taken all.
func TestMirror_Hangs_SendsContinue(t *testing.T) {
	server := redistest.Alone(t)
	n := start(t, server.URL())
	d, taken := n.onFaultyDisk(t), make(chan struct{})
	d.hangs.Store(&taken)
	for _, wait := range []time.Duration{time.Second, 0} { // the disk is waited for once
		began := time.Now()
		n.admit(t, "key", false)
		if took := time.Since(began); took < wait || took >= wait+time.Second {
			t.Errorf("a send took %v", took)
		}
	}
	var sends sync.WaitGroup
	for i := range 70 { // more than may be late
		sends.Go(func() { n.admit(t, fmt.Sprint("key", i), false) })
	}
	sends.Wait()
	away(t, server, n)
	_, err := n.mailbox.Take(t.Context(), "other")
	unavailable(t, err)
	close(taken)
}

// An admission that is recorded late and then not at all is counted once.
func TestMirror_LateAndFailed_CountedOnce(t *testing.T) {
	n := start(t, redistest.Alone(t).URL())
	d, taken := n.onFaultyDisk(t), make(chan struct{})
	d.hangs.Store(&taken)
	d.fails.Store(true)
	n.admit(t, "alice", false)
	close(taken)
	servertest.Eventually(t, "the write to fail", func() bool { return n.log.Count("not be recorded") == 1 })
	if s := n.State(); s.Unrecorded != 1 {
		t.Errorf("%d are unrecorded, want 1", s.Unrecorded)
	}
}
