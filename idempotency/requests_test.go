package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/keyed/keyedtest"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

const (
	lease = int64(60_000)
	keep  = int64(24 * 60 * 60 * 1000)
)

var (
	body  = idempotency.Fingerprint{1}
	other = idempotency.Fingerprint{2}
	first = idempotency.Answer{Status: 201, Header: []idempotency.Field{{Name: "A", Value: "b"}}, Body: []byte("first")}
)

func localStore(t *testing.T) keyed.Store {
	t.Helper()
	now := func() int64 { return time.Now().UnixMilli() }
	store, err := cache.Open(cache.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return keyed.Local(store.Table("requests"), now)
}

// eachHome runs a test on both homes. Each open is another process's view of one store.
func eachHome(t *testing.T, test func(t *testing.T, open func() keyed.Store)) {
	t.Run("local", func(t *testing.T) {
		store := localStore(t)
		test(t, func() keyed.Store { return store })
	})
	t.Run("redis", func(t *testing.T) {
		server := redistest.Alone(t)
		test(t, func() keyed.Store {
			client := redis.NewClient(&redis.Options{Addr: server.Addr})
			t.Cleanup(func() { _ = client.Close() })
			return keyed.Redis(client, "mailgate:requests")
		})
	})
}

// caller is one caller with one key.
type caller struct {
	t        *testing.T
	requests *idempotency.Requests
	name     idempotency.Name
}

func newCaller(t *testing.T, store keyed.Store) caller {
	t.Helper()
	requests, err := idempotency.New(idempotency.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return caller{t, requests, idempotency.Name{Caller: "shop", Key: "k"}}
}

func (c caller) begin(body idempotency.Fingerprint, want idempotency.State) idempotency.Outcome {
	c.t.Helper()
	o, err := c.requests.Begin(c.t.Context(), c.name, body)
	if err != nil || o.State != want {
		c.t.Fatalf("begin: state %d, want %d; %v", o.State, want, err)
	}
	return o
}

// expect checks what a call reported.
func (c caller) expect(want bool, call func(context.Context) (bool, error)) {
	c.t.Helper()
	if got, err := call(c.t.Context()); err != nil || got != want {
		c.t.Fatalf("%v, want %v; %v", got, want, err)
	}
}

func (c caller) handOver(l idempotency.Lease, want bool) {
	c.t.Helper()
	c.expect(want, func(ctx context.Context) (bool, error) { return c.requests.HandOver(ctx, l) })
}

func (c caller) finish(l idempotency.Lease, a idempotency.Answer, want bool) {
	c.t.Helper()
	c.expect(want, func(ctx context.Context) (bool, error) { return c.requests.Finish(ctx, l, a) })
}

func (c caller) abandon(l idempotency.Lease, want bool) {
	c.t.Helper()
	c.expect(want, func(ctx context.Context) (bool, error) { return c.requests.Abandon(ctx, l) })
}

func TestRequests_DoneOnce_AnsweredAlike(t *testing.T) {
	eachHome(t, func(t *testing.T, open func() keyed.Store) {
		var clock keyedtest.Clock
		c, elsewhere := newCaller(t, clock.Store(open())), newCaller(t, clock.Store(open()))
		l := c.begin(body, idempotency.Started).Lease
		o := elsewhere.begin(body, idempotency.InFlight)
		if o.RetryAfter < 1 || o.RetryAfter > lease {
			t.Errorf("retry after %d", o.RetryAfter)
		}
		elsewhere.begin(other, idempotency.Mismatch)
		c.handOver(l, true)
		c.handOver(l, false)
		elsewhere.begin(body, idempotency.InFlight)
		c.finish(l, first, true)
		c.finish(l, idempotency.Answer{Status: 500}, true) // the first one stays
		c.abandon(l, false)
		for range 2 {
			if o := elsewhere.begin(body, idempotency.Replay); !reflect.DeepEqual(o.Answer, first) {
				t.Errorf("the answer is %+v", o.Answer)
			}
			clock.Add(keep/2 - 10_000)
		}
		elsewhere.begin(other, idempotency.Mismatch)
		clock.Add(20_000)
		elsewhere.begin(other, idempotency.Started)
	})
}

func TestRequests_KilledAfterHandOver_Unknown(t *testing.T) {
	eachHome(t, func(t *testing.T, open func() keyed.Store) {
		var clock keyedtest.Clock
		c := newCaller(t, clock.Store(open()))
		l := c.begin(body, idempotency.Started).Lease
		clock.Add(lease / 2)
		c.handOver(l, true)
		clock.Add(lease)
		c.begin(body, idempotency.Unknown)
		c.begin(other, idempotency.Mismatch)
		clock.Add(keep - 2*lease)
		c.begin(body, idempotency.Unknown)
		c.finish(l, first, true) // it was only late
		c.begin(body, idempotency.Replay)
	})
}

func TestRequests_KilledBeforeHandOver_StartsAgain(t *testing.T) {
	eachHome(t, func(t *testing.T, open func() keyed.Store) {
		var clock keyedtest.Clock
		c := newCaller(t, clock.Store(open()))
		l := c.begin(body, idempotency.Started)
		if l.Previous != (throttle.ID{}) || !l.Lease.AdmissionID().Valid() {
			t.Errorf("previous %q, charged under %q", l.Previous, l.Lease.AdmissionID())
		}
		clock.Add(lease)
		again := c.begin(body, idempotency.Started)
		if again.Previous != l.Lease.AdmissionID() || again.Lease.AdmissionID() == again.Previous {
			t.Errorf("previous %q, want %q; charged under %q", again.Previous, l.Lease.AdmissionID(), again.Lease.AdmissionID())
		}
		c.handOver(l.Lease, false) // it was only late
		c.finish(l.Lease, first, false)
		c.abandon(l.Lease, false)
		c.handOver(again.Lease, true)
	})
}

func TestRequests_Abandoned_KeyIsFree(t *testing.T) {
	eachHome(t, func(t *testing.T, open func() keyed.Store) {
		c := newCaller(t, open())
		for _, handOver := range []bool{false, true} {
			l := c.begin(body, idempotency.Started).Lease
			if handOver {
				c.handOver(l, true)
			}
			c.abandon(l, true)
			c.abandon(l, false)
			c.handOver(l, false)
			if o := c.begin(other, idempotency.Started); o.Previous != (throttle.ID{}) {
				t.Errorf("previous %q of what was abandoned", o.Previous)
			} else {
				c.abandon(o.Lease, true)
			}
		}
	})
}

func TestRequests_AnsweredWithoutHandOver_Replays(t *testing.T) {
	c := newCaller(t, localStore(t))
	c.finish(c.begin(body, idempotency.Started).Lease, first, true)
	c.begin(body, idempotency.Replay)
}

func TestRequests_Callers_AreApart(t *testing.T) {
	a := newCaller(t, localStore(t))
	b := a
	b.name.Caller = "blog"
	a.begin(body, idempotency.Started)
	b.begin(other, idempotency.Started)
}

// Of many that begin at once one is told to do it; and when its lease has ended, again one.
func TestRequests_ManyAtOnce_OneStarted(t *testing.T) {
	eachHome(t, func(t *testing.T, open func() keyed.Store) {
		var clock keyedtest.Clock
		nodes := []caller{newCaller(t, clock.Store(open())), newCaller(t, clock.Store(open())), newCaller(t, clock.Store(open()))}
		for round := range 3 {
			var done sync.WaitGroup
			outcomes := make([]idempotency.Outcome, 48)
			for i := range outcomes {
				c := nodes[i%len(nodes)]
				done.Go(func() {
					o, err := c.requests.Begin(t.Context(), c.name, body)
					if err != nil {
						t.Error(err)
					}
					outcomes[i] = o
				})
			}
			done.Wait()
			count := map[idempotency.State]int{}
			for _, o := range outcomes {
				count[o.State]++
			}
			if count[idempotency.Started] != 1 || count[idempotency.InFlight] != len(outcomes)-1 {
				t.Fatalf("round %d: %v", round, count)
			}
			clock.Add(lease)
		}
	})
}

// outage is a node's view of shared records that can be away.
type outage struct {
	shared, own keyed.Store
	away        atomic.Bool
}

func (o *outage) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	if !o.away.Load() {
		alone, err := o.shared.Update(ctx, key, step)
		return alone, err
	}
	_, err := o.own.Update(ctx, key, step)
	return true, err
}

// copyTo makes the record of c's name in one store that of another, merged.
func (c caller) copyTo(from, to keyed.Store) {
	c.t.Helper()
	const name = "4:shopk"
	var own []byte
	look := func(old []byte, now int64) ([]byte, int64) {
		own = append([]byte(nil), old...)
		return idempotency.Merge(old, nil, now)
	}
	if _, err := from.Update(c.t.Context(), name, look); err != nil || len(own) == 0 {
		c.t.Fatalf("%d bytes, %v", len(own), err)
	}
	if _, err := to.Update(c.t.Context(), name, func(old []byte, now int64) ([]byte, int64) { return idempotency.Merge(old, own, now) }); err != nil {
		c.t.Fatal(err)
	}
}

// A request that was done alone is answered alone, and by the shared records once they know.
func TestRequests_Alone_DoneAndTold(t *testing.T) {
	eachHome(t, func(t *testing.T, open func() keyed.Store) {
		o := &outage{shared: open(), own: localStore(t)}
		c, elsewhere := newCaller(t, o), newCaller(t, o.shared)
		o.away.Store(true)
		began := c.begin(body, idempotency.Started)
		if !began.Alone {
			t.Error("it does not say that it was decided alone")
		}
		c.begin(body, idempotency.InFlight)
		c.handOver(began.Lease, true)
		c.finish(began.Lease, first, true)
		if again := c.begin(body, idempotency.Replay); !again.Alone {
			t.Error("it does not say that it was answered alone")
		}
		c.copyTo(o.own, o.shared)
		o.away.Store(false)
		if again := elsewhere.begin(body, idempotency.Replay); !reflect.DeepEqual(again.Answer, first) {
			t.Errorf("the answer is %+v", again.Answer)
		}
	})
}

func TestRequests_BegunAloneThenTold_GoesOn(t *testing.T) {
	o := &outage{shared: localStore(t), own: localStore(t)}
	c := newCaller(t, o)
	o.away.Store(true)
	l := c.begin(body, idempotency.Started).Lease
	c.copyTo(o.own, o.shared)
	o.away.Store(false)
	c.handOver(l, true)
	c.finish(l, first, true)
	c.begin(body, idempotency.Replay)
}

// Another node may replace an attempt that the shared records know of, so its mail must not
// leave unless they know of that as well.
func TestRequests_BegunShared_NotHandedOverAlone(t *testing.T) {
	o := &outage{shared: localStore(t), own: localStore(t)}
	c, elsewhere := newCaller(t, o), newCaller(t, o.shared)
	l := c.begin(body, idempotency.Started).Lease
	c.copyTo(o.shared, o.own) // as a node keeps what the shared records said
	o.away.Store(true)
	if ok, err := c.requests.HandOver(t.Context(), l); ok || !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("%v, %v", ok, err)
	}
	c.abandon(l, true)
	c.copyTo(o.own, o.shared)
	elsewhere.begin(body, idempotency.Started)
}

// An attempt that the shared records knew of may have gone on at another node, so it is not
// replaced alone, however often that is tried.
func TestRequests_EndedAttempt_NotReplacedAlone(t *testing.T) {
	var clock keyedtest.Clock
	o := &outage{shared: clock.Store(localStore(t)), own: clock.Store(localStore(t))}
	c := newCaller(t, o)
	c.begin(body, idempotency.Started)
	c.copyTo(o.shared, o.own)
	o.away.Store(true)
	clock.Add(lease)
	for range 3 {
		unheard, err := c.requests.Begin(t.Context(), c.name, body)
		if unheard.State == idempotency.Started || !errors.Is(err, throttle.ErrUnavailable) {
			t.Fatalf("state %d, %v", unheard.State, err)
		}
		c.abandon(unheard.Lease, false)
	}
	o.away.Store(false)
	c.begin(body, idempotency.Started)
}

// lost takes each step and then loses the reply.
type lost struct{ keyed.Store }

func (l lost) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	if _, err := l.Store.Update(ctx, key, step); err != nil {
		return false, err
	}
	return false, throttle.Unavailable("changing a record", errors.New("the reply was lost"))
}

func TestRequests_ReplyLost_LeaseAbandons(t *testing.T) {
	store := localStore(t)
	c := newCaller(t, lost{store})
	o, err := c.requests.Begin(t.Context(), c.name, body)
	if o.State == idempotency.Started || !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("state %d, %v", o.State, err)
	}
	if ok, err := c.requests.HandOver(t.Context(), o.Lease); ok || err == nil {
		t.Errorf("handed over unheard: %v, %v", ok, err)
	}
	if kept, err := c.requests.Finish(t.Context(), idempotency.Lease{}, first); kept || err == nil {
		t.Errorf("finished without a lease: %v, %v", kept, err)
	}
	c.requests = newCaller(t, store).requests
	c.begin(body, idempotency.InFlight)
	c.abandon(o.Lease, true)
	c.begin(body, idempotency.Started)
}

// A damaged record is an error, never a request that may be done, and names no one.
func TestRequests_DamagedRecord_Fails(t *testing.T) {
	eachHome(t, func(t *testing.T, open func() keyed.Store) {
		store := open()
		c := newCaller(t, store)
		for _, damaged := range []string{"damaged", "\x01\x04" + strings.Repeat("t", 16) + string(body[:]) + "\xff\xff\xff\xff\xff\x7fdamaged"} {
			if _, err := store.Update(t.Context(), "4:shopk", func(_ []byte, now int64) ([]byte, int64) { return []byte(damaged), now + keep }); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				o, err := c.requests.Begin(t.Context(), c.name, body)
				if o.State == idempotency.Started || o.State == idempotency.Replay || !errors.Is(err, throttle.ErrUnavailable) || strings.Contains(fmt.Sprint(err), "shop") {
					t.Errorf("state %d, %v", o.State, err)
				}
			}
		}
	})
}

func TestRequests_Invalid_Fails(t *testing.T) {
	c := newCaller(t, localStore(t))
	l := c.begin(body, idempotency.Started).Lease
	if _, err := c.requests.Finish(t.Context(), l, idempotency.Answer{}); !errors.Is(err, idempotency.ErrAnswer) {
		t.Errorf("an answer without a status: %v", err)
	}
	for name, want := range map[idempotency.Name]error{
		{Caller: "shop"}: idempotency.ErrKey,
		{Caller: strings.Repeat("c", 256), Key: "k"}: idempotency.ErrCaller,
	} {
		if _, err := c.requests.Begin(t.Context(), name, body); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	const year = 366 * 24 * 60 * 60 * 1000
	for _, o := range []idempotency.Options{{}, {Lease: -1}, {Keep: -1}, {Lease: 2, Keep: 1}, {Keep: year + 1}} {
		if o != (idempotency.Options{}) {
			o.Store = localStore(t)
		}
		if _, err := idempotency.New(o); err == nil {
			t.Errorf("%+v passes", o)
		}
	}
}
