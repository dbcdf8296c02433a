package outage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What cannot be owed is not admitted, and its place is free.
func TestWhatIsNotOwedIsNotAdmitted(t *testing.T) {
	clock, p, disk := clocktest.New(start), throttletest.Policy(t, "minute=1/60s"), cachetest.Open(t, cache.Memory)
	n := openNode(t, openShared(t, p, clock), disk, p, clock.Now, nil)
	own := openLimiter(t, cachetest.Open(t, cache.Memory), p, clock.Now) // on a disk that is well
	limiter := n.watch.Historian("mailbox", p.Longest(), n.shared, own)
	before := throttle.NewID()
	if _, err := limiter.Take(context.Background(), "bob@example.com", before); err != nil {
		t.Fatal(err)
	}
	n.shared.set(silent)
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	_, take := limiter.Take(context.Background(), alice, throttle.NewID())
	_, release := limiter.Release(context.Background(), "bob@example.com", before)
	for doing, err := range map[string]error{"take": take, "release": release} {
		if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) || !errors.Is(err, errSilent) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if got := n.history(own, alice); len(got) != 0 {
		t.Errorf("on this node's record: %v", got)
	}
	if s := n.watch.State(); s.Admitted != 0 {
		t.Errorf("%d are counted", s.Admitted)
	}
}

// What was admitted before, and is given back while neither the shared history nor the disk
// answers, is an error: else it would stay charged, and nobody would know.
func TestWhatIsNotGivenBackIsAnError(t *testing.T) {
	clock, p, disk := clocktest.New(start), throttletest.Policy(t, "minute=1/60s"), cachetest.Open(t, cache.Memory)
	n := openNode(t, openShared(t, p, clock), disk, p, clock.Now, nil)
	id := throttle.NewID()
	n.take(alice, id)
	n.shared.set(silent)
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	if released, err := n.Release(context.Background(), alice, id); released || !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) {
		t.Errorf("%v, %v", released, err)
	}
}

// What cannot be taken off the own history is given back to the shared one all the same.
func TestGivesBackWhatTheOwnHistoryKeeps(t *testing.T) {
	clock, p := clocktest.New(start), throttletest.Policy(t, "minute=1/60s")
	n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, nil)
	broken := cachetest.Open(t, cache.Memory)
	limiter := n.watch.Historian("mailbox", p.Longest(), n.shared, openLimiter(t, broken, p, clock.Now))
	id := throttle.NewID()
	if _, err := limiter.Take(context.Background(), alice, id); err != nil {
		t.Fatal(err)
	}
	n.shared.set(silent)
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	if released, err := limiter.Release(context.Background(), alice, id); !released || err != nil {
		t.Errorf("%v, %v", released, err)
	}
	n.shared.set(none)
	n.watch.Start()
	n.healthy()
	if got := n.history(n.shared.Survey, alice); len(got) != 0 {
		t.Errorf("a charge without a mail: %v", got)
	}
}

// Of those that are given back each is owed, however many they are.
func TestGivesBackMany(t *testing.T) {
	n, _ := opened(t, "minute=100/60s")
	var ids []throttle.ID
	for range 100 { // that another node has made
		ids = append(ids, throttle.NewID())
		if _, err := n.shared.Survey.Take(context.Background(), alice, ids[len(ids)-1]); err != nil {
			t.Fatal(err)
		}
	}
	n.shared.set(silent)
	for _, id := range ids {
		if _, err := n.Release(context.Background(), alice, id); err != nil {
			t.Fatal(err)
		}
	}
	n.shared.set(none)
	n.healthy()
	if got := n.history(n.shared.Survey, alice); len(got) != 0 {
		t.Errorf("%d are left charged", len(got))
	}
}

// A send that another node has made is given back here, where nobody knows of it.
func TestGivesBackWhatItDoesNotKnow(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	id := throttle.NewID()
	if _, err := n.shared.Survey.Take(context.Background(), alice, id); err != nil {
		t.Fatal(err)
	}
	n.shared.set(silent)
	if released, err := n.Release(context.Background(), alice, id); err != nil || released {
		t.Errorf("%v, %v", released, err)
	}
	n.shared.set(none)
	n.healthy()
	if got := n.history(n.shared.Survey, alice); len(got) != 0 {
		t.Errorf("a charge without a mail: %v", got)
	}
}

// What was admitted elsewhere counts together and alone.
func TestRecordsHereAndThere(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	a := throttle.Admission{ID: throttle.NewID(), At: start}
	if err := n.Record(context.Background(), alice, a); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]throttle.Historian{"shared": n.shared.Survey, "own": n.own} {
		if got := n.history(h, alice); !slices.Equal(got, throttle.History{a}) {
			t.Errorf("the %s history: %v", name, got)
		}
	}
}

// Until the shared history was met its clock is not known, and nothing is too old to be
// written, whatever the machine's clock says.
func TestNothingIsOldBeforeTheClockIsKnown(t *testing.T) {
	clock, p, disk := clocktest.New(start), throttletest.Policy(t, "minute=1/60s"), cachetest.Open(t, cache.Memory)
	s := openShared(t, p, clock)
	n := openNode(t, s, disk, p, clock.Now, nil)
	n.shared.set(dead)
	id := throttle.NewID()
	n.take(alice, id)
	n.close()
	n.own.Close()

	s.set(none)
	ahead := int64(1_000_000)
	n = openNode(t, s, disk, p, func() int64 { return clock.Now() + ahead }, nil)
	if v, err := n.Peek(context.Background(), alice); err != nil || !v.Degraded {
		t.Errorf("before it was met: %+v, %v", v, err)
	}
	ahead = 0
	n.watch.Start()
	n.healthy()
	if got := n.history(s.Survey, alice); len(got) != 1 || got[0].ID != id {
		t.Errorf("on record: %v", got)
	}
}

// A few debts of a key are paid while somebody waits for an answer, and many are not.
func TestNobodyWaitsForManyDebts(t *testing.T) {
	clock, p := clocktest.New(start), throttletest.Policy(t, "minute=100/60s")
	n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, nil)
	n.take("met@example.com", throttle.NewID()) // nobody works in the background
	for _, tt := range []struct {
		debts    int
		degraded bool
	}{{16, false}, {17, true}} {
		key := fmt.Sprintf("%d@example.com", tt.debts)
		n.shared.set(dead)
		for range tt.debts {
			n.take(key, throttle.NewID())
		}
		n.shared.set(none)
		if v, err := n.Peek(context.Background(), key); err != nil || v.Degraded != tt.degraded {
			t.Errorf("with %d: %+v, %v", tt.debts, v, err)
		}
	}
}

// Who gives up while the question is on its way tells nothing of the shared history.
func TestGivesUpOnTheWay(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	ctx, giveUp := context.WithCancel(context.Background())
	n.shared.set(silent)
	n.shared.during = giveUp
	if _, err := n.Take(ctx, alice, throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if s := n.watch.State(); s.Degraded || s.Debts != 0 {
		t.Errorf("%+v", s)
	}
}

// A look at the readiness is how an outage is met with, too.
func TestReadinessMeetsTheOutage(t *testing.T) {
	n, _ := opened(t, "minute=1/60s")
	n.shared.set(dead)
	if err := n.watch.Ready(context.Background(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if !n.watch.State().Degraded {
		t.Error("no outage")
	}
}

// A send that is asked for again alone has the time at which it was admitted.
func TestAskedForAgainAlone(t *testing.T) {
	n, clock := opened(t, "minute=1/60s")
	id := throttle.NewID()
	n.shared.set(dead)
	n.take(alice, id)
	clock.Add(10)
	n.take(alice, id)
	n.shared.set(none)
	n.healthy()
	if got := n.history(n.shared.Survey, alice); !slices.Equal(got, throttle.History{{ID: id, At: start}}) {
		t.Errorf("on record: %v", got)
	}
}

// What is owed is written before a key is reset, or it would come back.
func TestResetReachesWhatIsOwed(t *testing.T) {
	clock, p := clocktest.New(start), throttletest.Policy(t, "minute=1/60s")
	n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, nil)
	n.take("met@example.com", throttle.NewID()) // nobody works in the background
	n.shared.set(dead)
	n.take(alice, throttle.NewID())
	n.shared.set(none)
	if cleared, err := n.Reset(context.Background(), alice); err != nil || cleared != 1 {
		t.Errorf("%d, %v", cleared, err)
	}
	if s := n.watch.State(); s.Debts != 0 {
		t.Errorf("%d debts are left", s.Debts)
	}
}

// refusing is a shared history that does not take what was admitted elsewhere, until it is well.
type refusing struct {
	outage.Survey
	why  error
	well atomic.Bool
}

func (r *refusing) Record(ctx context.Context, key string, a throttle.Admission) error {
	if r.well.Load() {
		return r.Survey.Record(ctx, key, a)
	}
	return r.why
}

// What never can be written is told once, and keeps nobody from being well.
func TestWhatCannotBeWrittenIsToldAndDropped(t *testing.T) {
	clock, p := clocktest.New(start), throttletest.Policy(t, "minute=1/60s")
	n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, nil)
	n.shared.Survey = &refusing{Survey: n.shared.Survey, why: errors.New("wrong on record")}
	n.shared.set(dead)
	n.take(alice, throttle.NewID())
	n.shared.set(none)
	n.watch.Start()
	n.healthy()
	if lines := n.log.lines("cannot be written"); len(lines) != 1 || !strings.Contains(lines[0], "wrong on record") || strings.Contains(lines[0], alice) {
		t.Errorf("the log has %q", lines)
	}
	if s := n.watch.State(); s.Written != 0 {
		t.Errorf("%d are counted as written", s.Written)
	}
}

// An outage is not over because a question is answered: also what failed has to succeed, and
// what is owed to be taken.
func TestNotOverByHalf(t *testing.T) {
	for name, half := range map[string]func(n *node) (mend func()){
		"a call fails": func(n *node) func() {
			n.shared.set(dead)
			if _, err := n.Peek(context.Background(), alice); err != nil {
				n.t.Error(err)
			}
			return func() { n.shared.set(none) }
		},
		"a debt is not taken": func(n *node) func() {
			n.shared.set(dead)
			n.take(alice, throttle.NewID())
			there := &refusing{Survey: n.shared.Survey, why: throttle.ErrUnavailable}
			n.shared.Survey = there
			n.shared.set(none)
			return func() { there.well.Store(true) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock, p := clocktest.New(start), throttletest.Policy(t, "minute=1/60s")
			var asked atomic.Int64
			n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, func(o *outage.Options) {
				o.Shared = func(context.Context) error { asked.Add(1); return nil }
			})
			mend := half(n)
			n.watch.Start()
			servertest.Eventually(t, "some questions", func() bool { return asked.Load() > 5 })
			if s := n.watch.State(); !s.Degraded {
				t.Errorf("it is over: %+v", s)
			}
			mend()
			n.healthy()
		})
	}
}

// pausing has something happen after its yes to a send, and before anybody hears of it.
type pausing struct {
	*local.Limiter
	during func()
}

func (p *pausing) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	v, err := p.Limiter.Take(ctx, key, id)
	p.during()
	return v, err
}

// One is admitted alone, and before that is owed the shared history is back and another asks
// it: that one has to wait, as otherwise both would be admitted.
func TestAsksWhenAllIsOwed(t *testing.T) {
	clock, p := clocktest.New(start), throttletest.Policy(t, "minute=1/60s")
	n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, nil)
	own := &pausing{Limiter: n.own, during: func() {}}
	limiter := n.watch.Historian("mailbox", p.Longest(), n.shared, own)
	take := func() bool {
		v, err := limiter.Take(context.Background(), alice, throttle.NewID())
		if err != nil {
			t.Error(err)
		}
		return v.Allowed
	}
	if v, err := limiter.Peek(context.Background(), alice); err != nil || !v.Allowed { // now it has met the shared history
		t.Fatalf("%+v, %v", v, err)
	}
	other := make(chan bool, 1)
	own.during = func() {
		own.during = func() {}
		n.shared.set(none)
		go func() { other <- take() }()
		select { // it must not come to an end, and a while is all there is to see that by
		case yes := <-other:
			other <- yes
		case <-time.After(50 * time.Millisecond):
		}
	}
	n.shared.set(dead)
	if one, another := take(), <-other; !one || another {
		t.Errorf("admitted: %v and %v", one, another)
	}
}
