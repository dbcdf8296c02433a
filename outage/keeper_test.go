package outage_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/idempotencytest"
	"github.com/mailgate/mailgate/idempotency/local"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
)

// An office is a node's record of requests, and the shared one.
type office struct {
	*outage.Keeper
	t     *testing.T
	watch *outage.Watch
	there *sharedKeeper
	clock *clocktest.Clock
}

var terms = idempotency.Terms{Lease: 30_000, Keep: 7_200_000}

func openOwnKeeper(t testing.TB, disk *cache.Disk, name string, terms idempotency.Terms, now func() int64) *local.Keeper {
	t.Helper()
	k, err := local.New(disk, local.Options{Terms: terms, Name: name, Now: now, Size: cache.Size{Entries: 64, Bytes: 1 << 18}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func openOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, clock: clocktest.New(start)}
	disk := cachetest.Open(t, cache.Memory)
	o.there = &sharedKeeper{Keeper: openOwnKeeper(t, disk, "there", terms, o.clock.Now)}
	var err error
	o.watch, err = outage.NewWatch(outage.Options{Disk: disk, Away: unavailableIsAway, Shared: o.there.ready, Now: o.clock.Now, Pause: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	o.Keeper = o.watch.Keeper("answers", terms, o.there, openOwnKeeper(t, disk, "own", terms, o.clock.Now))
	o.watch.Start()
	t.Cleanup(func() { closeAtOnce(o.watch) })
	return o
}

var (
	request = idempotency.Name{Caller: "web:site", Key: "1:2"}
	body    = idempotency.Fingerprint{7}
	sent    = idempotency.Answer{Status: 200, Body: []byte(`{"status":"sent"}`)}
)

func (o *office) begin(at idempotency.Keeper, want idempotency.State) idempotency.Outcome {
	o.t.Helper()
	outcome, err := at.Begin(context.Background(), request, body)
	if err != nil || outcome.State != want {
		o.t.Fatalf("begin: %v, %v; want %v", outcome.State, err, want)
	}
	return outcome
}

func (o *office) finish(lease idempotency.Lease) {
	o.t.Helper()
	if kept, err := o.Finish(context.Background(), lease, sent); err != nil || !kept {
		o.t.Fatalf("finish: %v, %v", kept, err)
	}
}

func (o *office) back() {
	o.t.Helper()
	o.there.set(none)
	awaitHealth(o.t, o.watch)
}

// Together the keeper is one like any other.
func TestKeeperConforms(t *testing.T) {
	t.Parallel()
	disk, there := cachetest.Open(t, cache.Memory), cachetest.Open(t, cache.Memory)
	watch := openWatch(t, disk, new(line))
	idempotencytest.Run(t, func(t testing.TB, terms idempotency.Terms, now func() int64) idempotency.Keeper {
		name := throttle.NewID().String()
		return watch.Keeper(name, terms, openOwnKeeper(t, there, name, terms, now), openOwnKeeper(t, disk, name, terms, now))
	}, 500)
}

// A request that is begun and done alone is done once, and afterwards all know its answer.
func TestRequestAlone(t *testing.T) {
	for name, fault := range map[string]fault{"dead": dead, "unheard": unheard} {
		t.Run(name, func(t *testing.T) {
			o := openOffice(t)
			o.there.set(fault)
			begun := o.begin(o, idempotency.Started)
			if !begun.Degraded {
				t.Error("nothing says that another node may have done it")
			}
			o.begin(o, idempotency.InFlight)
			o.finish(begun.Lease)
			o.begin(o, idempotency.Replay)
			o.back()
			if again := o.begin(o.there.Keeper, idempotency.Replay); string(again.Answer.Body) != string(sent.Body) {
				t.Errorf("the others answer %s", again.Answer.Body)
			}
			o.begin(o, idempotency.Replay)
		})
	}
}

// While the shared keeper answers nobody else can have done it.
func TestRequestTogether(t *testing.T) {
	o := openOffice(t)
	if o.begin(o, idempotency.Started).Degraded {
		t.Error("the shared keeper was asked")
	}
}

// A watched context tells when somebody waits for its end.
type watched struct {
	context.Context
	waits func()
}

func (w watched) Done() <-chan struct{} {
	w.waits()
	return w.Context.Done()
}

// Of two requests with one name that come at once one is done, also where the shared keeper
// was away for the second alone; who gives up waiting is told so.
func TestRequestsAtOnce(t *testing.T) {
	o := openOffice(t)
	second, impatient := make(chan idempotency.Outcome, 1), make(chan error, 1)
	o.there.during = func() {
		o.there.set(dead)
		waits := make(chan struct{})
		go func() {
			outcome, _ := o.Begin(watched{t.Context(), sync.OnceFunc(func() { close(waits) })}, request, body)
			second <- outcome
		}()
		select {
		case <-waits:
		case outcome := <-second:
			second <- outcome
		}
		ctx, stop := context.WithCancel(t.Context())
		_, err := o.Begin(watched{ctx, stop}, request, body)
		impatient <- err
	}
	first := o.begin(o, idempotency.Started)
	if got := <-second; first.Degraded || got.State != idempotency.InFlight {
		t.Errorf("the first is alone: %t; the second is told %v", first.Degraded, got.State)
	}
	if err := <-impatient; !errors.Is(err, idempotency.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up is told %v", err)
	}
	o.back()
	o.finish(first.Lease)
	o.begin(o, idempotency.Replay)
}

// What this node has done, or is at, while all was well it does not do again alone.
func TestRequestOfBefore(t *testing.T) {
	o := openOffice(t)
	lease := o.begin(o, idempotency.Started).Lease
	o.there.set(dead)
	o.begin(o, idempotency.InFlight)
	o.there.set(none)
	o.finish(lease)
	o.there.set(dead)
	if again := o.begin(o, idempotency.Replay); string(again.Answer.Body) != string(sent.Body) {
		t.Errorf("answered %s", again.Answer.Body)
	}
	o.back()
	o.begin(o.there.Keeper, idempotency.Replay)
}

// One that was begun together and ends alone is answered here at once, and there afterwards.
func TestRequestEndsAlone(t *testing.T) {
	o := openOffice(t)
	lease := o.begin(o, idempotency.Started).Lease
	o.there.set(silent)
	o.finish(lease)
	o.begin(o, idempotency.Replay)
	o.back()
	o.begin(o.there.Keeper, idempotency.Replay)
}

// One that was given up is free, here and there.
func TestRequestGivenUp(t *testing.T) {
	o := openOffice(t)
	lease := o.begin(o, idempotency.Started).Lease
	o.there.set(silent)
	if freed, err := o.Abandon(context.Background(), lease); err != nil || !freed {
		t.Fatalf("%v, %v", freed, err)
	}
	lease = o.begin(o, idempotency.Started).Lease
	if freed, err := o.Abandon(context.Background(), lease); err != nil || !freed {
		t.Fatalf("%v, %v", freed, err)
	}
	o.back()
	o.begin(o.there.Keeper, idempotency.Started)
}

// A node that has given another's answer gives it once more in an outage, for a while.
func TestRequestOfAnother(t *testing.T) {
	o := openOffice(t)
	theirs := o.begin(o.there.Keeper, idempotency.Started).Lease
	if _, err := o.there.Keeper.Finish(context.Background(), theirs, sent); err != nil {
		t.Fatal(err)
	}
	o.begin(o, idempotency.Replay)
	o.there.set(dead)
	o.clock.Add(599_999)
	if again := o.begin(o, idempotency.Replay); again.Degraded || string(again.Answer.Body) != string(sent.Body) {
		t.Errorf("alone it answers %+v", again)
	}
	o.clock.Add(1)
	if !o.begin(o, idempotency.Started).Degraded {
		t.Error("nothing says that another node may have done it")
	}
}

// One that was begun alone and ends when all is well again is kept, here and there; also
// where the shared keeper has begun it unheard.
func TestRequestEndsTogether(t *testing.T) {
	for name, fault := range map[string]fault{"dead": dead, "unheard": unheard} {
		t.Run(name, func(t *testing.T) {
			o := openOffice(t)
			o.there.set(fault)
			lease := o.begin(o, idempotency.Started).Lease
			o.back()
			o.finish(lease)
			o.begin(o.there.Keeper, idempotency.Replay)
		})
	}
}

// Who comes to the end of a request when another node has begun it anew keeps no answer.
func TestRequestBegunAnew(t *testing.T) {
	o := openOffice(t)
	lease := o.begin(o, idempotency.Started).Lease
	o.clock.Add(terms.Lease)
	o.begin(o.there.Keeper, idempotency.Started)
	if kept, err := o.Finish(context.Background(), lease, sent); kept || err != nil {
		t.Errorf("%v, %v", kept, err)
	}
	o.begin(o, idempotency.InFlight)
}

// Of one that another node has begun meanwhile the answer waits for the end of that lease.
func TestRequestBegunTwice(t *testing.T) {
	o := openOffice(t)
	o.there.set(dead)
	lease := o.begin(o, idempotency.Started).Lease
	theirs := o.begin(o.there.Keeper, idempotency.Started).Lease
	o.finish(lease)
	asked := make(chan struct{})
	o.there.during = func() { close(asked) }
	o.there.set(none)
	<-asked
	o.begin(o, idempotency.Replay)
	o.begin(o.there.Keeper, idempotency.InFlight)
	if _, err := o.there.Keeper.Abandon(context.Background(), theirs); err != nil {
		t.Fatal(err)
	}
	o.back()
	o.begin(o.there.Keeper, idempotency.Replay)
}

// One whose other lease ends while this node tells of its own answer is done all the same.
func TestRequestOfAnotherEnds(t *testing.T) {
	o := openOffice(t)
	o.there.set(dead)
	lease := o.begin(o, idempotency.Started).Lease
	o.begin(o.there.Keeper, idempotency.Started)
	o.finish(lease)
	o.there.before = func() { o.clock.Add(terms.Lease) }
	o.back()
	o.begin(o.there.Keeper, idempotency.Replay)
}

func (o *office) beginAs(lease idempotency.Lease, degraded bool) {
	o.t.Helper()
	outcome, err := o.BeginAs(context.Background(), lease)
	if err != nil || outcome.State != idempotency.Started || outcome.Degraded != degraded {
		o.t.Fatalf("begin as: %v, alone %v, %v; want it alone: %v", outcome.State, outcome.Degraded, err, degraded)
	}
}

// A lease that was given alone, and is begun as once more, is known to all when they can be
// told.
func TestLeaseIsTold(t *testing.T) {
	for name, fault := range map[string]fault{"dead": dead, "unheard": unheard} {
		t.Run(name, func(t *testing.T) {
			o := openOffice(t)
			o.there.set(fault)
			lease := o.begin(o, idempotency.Started).Lease
			o.beginAs(lease, true)
			o.beginAs(lease, true)
			o.back()
			o.begin(o.there.Keeper, idempotency.InFlight)
			o.beginAs(lease, false)
			o.finish(lease)
			o.begin(o.there.Keeper, idempotency.Replay)
		})
	}
}

// One that can be told by then is told at once.
func TestLeaseIsToldAtOnce(t *testing.T) {
	for name, fault := range map[string]fault{"dead": dead, "unheard": unheard} {
		t.Run(name, func(t *testing.T) {
			o := openOffice(t)
			o.there.set(fault)
			lease := o.begin(o, idempotency.Started).Lease
			o.there.set(none)
			o.beginAs(lease, false)
			o.begin(o.there.Keeper, idempotency.InFlight)
		})
	}
}

// A lease that is yet to be told of and was given up is free in the end, also where the
// others are told of it in that moment.
func TestLeaseGivenUpUntold(t *testing.T) {
	o := openOffice(t)
	o.there.set(dead)
	lease := o.begin(o, idempotency.Started).Lease
	o.beginAs(lease, true)
	abandoned := make(chan error, 1)
	o.there.before = func() {
		freed, err := o.Abandon(context.Background(), lease)
		if err == nil && !freed {
			err = errors.New("it was not free")
		}
		abandoned <- err
	}
	o.there.set(none)
	if err := <-abandoned; err != nil {
		t.Fatal(err)
	}
	o.back()
	o.begin(o.there.Keeper, idempotency.Started)
}

// Where another node has done the request meanwhile, each node keeps to its own answer.
func TestRequestDoneTwice(t *testing.T) {
	o := openOffice(t)
	o.there.set(dead)
	lease := o.begin(o, idempotency.Started).Lease
	o.finish(lease)
	theirs := o.begin(o.there.Keeper, idempotency.Started).Lease
	if _, err := o.there.Keeper.Finish(context.Background(), theirs, idempotency.Answer{Status: 422}); err != nil {
		t.Fatal(err)
	}
	o.back()
	if a := o.begin(o, idempotency.Replay).Answer; a.Status != 200 {
		t.Errorf("here: %d", a.Status)
	}
	if a := o.begin(o.there.Keeper, idempotency.Replay).Answer; a.Status != 422 {
		t.Errorf("there: %d", a.Status)
	}
}
