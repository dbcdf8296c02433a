package standby_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// disk is the home of the node's own limiter, with faults.
type disk struct {
	throttle.Home
	fails    atomic.Bool
	panics   atomic.Bool
	hangs    atomic.Pointer[chan struct{}] // until it is closed
	recorded atomic.Int64
}

func (d *disk) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	if op.Step != throttle.StepRecord {
		return d.Home.Do(ctx, key, op)
	}
	if until := d.hangs.Load(); until != nil {
		<-*until
	}
	if d.panics.Load() {
		panic("recording")
	}
	defer d.recorded.Add(1)
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

// A panic of the own records is one more of their failures.
func TestMirror_Panics_SendsContinueAndNotAlone(t *testing.T) {
	server := redistest.Alone(t)
	n := start(t, server.URL())
	n.onFaultyDisk(t).panics.Store(true)
	n.admit(t, "alice", false)
	if s := n.State(); s.Unrecorded != 1 || n.log.Count("not be recorded") != 1 || n.log.Count("own_test.go") == 0 {
		t.Errorf("%d unrecorded; the log is\n%s", s.Unrecorded, n.log.String())
	}
	away(t, server, n)
	_, err := n.mailbox.Take(t.Context(), "bob")
	unavailable(t, err)
}

// panicking is a home on Redis that records nothing.
type panicking struct{ throttle.Home }

func (p panicking) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	if op.Step == throttle.StepRecord {
		panic("recording")
	}
	return p.Home.Do(ctx, key, op)
}

// A panic in the sync of one record holds up no other.
func TestSync_Panics_OthersAreSynced(t *testing.T) {
	server := redistest.Durable(t)
	n := start(t, server.URL())
	bad := n.Limiter("bad", throttle.New(tiers, panicking{onRedis(t, n.client, "bad", tiers).Home}), local.New(n.store.Table("bad"), tiers))
	away(t, server, n)
	if v, err := bad.Take(t.Context(), "alice"); err != nil || !v.Allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	n.admit(t, "alice", true)
	server.Restart()
	servertest.Eventually(t, "the others to be synced", func() bool { return n.State().Journal == 1 && n.log.Count("internal error") > 0 })
	onRedisAre(t, server, 1)
}

// The own records take the steps on a key in the order in which Redis did.
func TestMirror_FirstStepIsLate_SecondStaysBehind(t *testing.T) {
	n := start(t, redistest.Alone(t).URL())
	d, taken := n.onFaultyDisk(t), make(chan struct{})
	d.hangs.Store(&taken)
	a := n.admit(t, "alice", false)
	if released, err := n.mailbox.Release(t.Context(), "alice", a); err != nil || !released {
		t.Fatalf("released %v, %v", released, err)
	}
	close(taken)
	servertest.Eventually(t, "both steps on the own records", func() bool {
		v, err := n.own.Peek(t.Context(), "alice")
		return err == nil && d.recorded.Load() == 1 && v.Sent == 0
	})
}

// commits returns how many transactions the log of a node's database has.
func commits(t *testing.T, dir string) (n int) {
	t.Helper()
	logs := must.Get(filepath.Glob(filepath.Join(dir, "*-wal")))(t)
	if len(logs) != 1 {
		t.Fatalf("the logs in the data directory: %v", logs)
	}
	log := must.Get(os.ReadFile(logs[0]))(t)
	const header, frameHeader = 32, 24
	frame := frameHeader + int(binary.BigEndian.Uint32(log[8:])) // and the page
	for at := header; at+frame <= len(log); at += frame {
		if binary.BigEndian.Uint32(log[at+4:]) != 0 { // the last one of a transaction
			n++
		}
	}
	return n
}

// A decision alone is one write to the node's disk: of its own record and of the journal.
func TestTake_Alone_OneDiskWrite(t *testing.T) {
	server, dir := redistest.Alone(t), t.TempDir()
	n := open(t, dir, server.URL())
	n.admit(t, "before", false)
	away(t, server, n)
	n.admit(t, "alone", true)
	before := commits(t, dir)
	const sends = 20
	for i := range sends {
		n.admit(t, fmt.Sprint("key", i), true)
	}
	if after := commits(t, dir); after-before != sends {
		t.Errorf("%d sends alone were %d writes", sends, after-before)
	}
}
