package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/keyed/keyedtest"
	"github.com/mailgate/mailgate/throttle"
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

// caller is one caller with one key.
type caller struct {
	t        *testing.T
	requests *idempotency.Requests
	name     idempotency.Name
}

func newCaller(t *testing.T, store keyed.Store) caller {
	return caller{t, idempotency.New(store, lease), idempotency.Name{Caller: "shop", Key: "k"}}
}

func (c caller) begin(body idempotency.Fingerprint, want idempotency.State) idempotency.Outcome {
	c.t.Helper()
	o, err := c.requests.Begin(c.t.Context(), c.name, body)
	if err != nil || o.State != want {
		c.t.Fatalf("begin: state %d, want %d; %v", o.State, want, err)
	}
	return o
}

// expect returns a check of what a call reported.
func (c caller) expect(want bool) func(bool, error) {
	c.t.Helper()
	return func(got bool, err error) {
		c.t.Helper()
		if err != nil || got != want {
			c.t.Fatalf("%v, want %v; %v", got, want, err)
		}
	}
}

func (c caller) handOver(l idempotency.Lease, want bool) {
	c.t.Helper()
	c.expect(want)(c.requests.HandOver(c.t.Context(), l))
}

func (c caller) finish(l idempotency.Lease, a idempotency.Answer, want bool) {
	c.t.Helper()
	c.expect(want)(c.requests.Finish(c.t.Context(), l, a))
}

func (c caller) abandon(l idempotency.Lease, want bool) {
	c.t.Helper()
	c.expect(want)(c.requests.Abandon(c.t.Context(), l))
}

func TestRequests_DoneOnce_AnsweredAlike(t *testing.T) {
	keyedtest.EachHome(t, func(t *testing.T, clock *keyedtest.Clock, open func() keyed.Store) {
		c, elsewhere := newCaller(t, open()), newCaller(t, open())
		l := c.begin(body, idempotency.Started).Lease
		elsewhere.begin(body, idempotency.InFlight)
		elsewhere.begin(other, idempotency.Mismatch)
		blog := caller{t, c.requests, idempotency.Name{Caller: "blog", Key: c.name.Key}}
		blog.begin(other, idempotency.Started) // as callers are apart
		c.handOver(l, true)
		c.handOver(l, false)
		elsewhere.begin(body, idempotency.InFlight)
		clock.Add(lease)
		elsewhere.begin(body, idempotency.Unknown)
		elsewhere.begin(other, idempotency.Mismatch)
		c.finish(l, first, true)                           // it was only late
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

// inMemory is a caller of a store of this process.
func inMemory(t *testing.T) (caller, keyed.Store, *keyedtest.Clock) {
	t.Helper()
	clock := &keyedtest.Clock{}
	store := keyedtest.Local(t, clock)
	return newCaller(t, store), store, clock
}

func TestRequests_KilledBeforeHandOver_StartsAgain(t *testing.T) {
	c, _, clock := inMemory(t)
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
}

// Of many that begin at once one is told to do it; and when its lease has ended, again one.
func TestRequests_ManyAtOnce_OneStarted(t *testing.T) {
	keyedtest.EachHome(t, func(t *testing.T, clock *keyedtest.Clock, open func() keyed.Store) {
		nodes := []caller{newCaller(t, open()), newCaller(t, open()), newCaller(t, open())}
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

// alone is the view that a node has of its own records in an outage.
type alone struct{ keyed.Store }

func (a alone) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	_, err := a.Store.Update(ctx, key, step)
	return true, err
}

// Another node may replace an attempt that was begun in the shared records, or go on with it. So a
// node that is alone neither hands it over nor replaces it, however often that is tried.
func TestRequests_BegunShared_NeitherHandedOverNorReplacedAlone(t *testing.T) {
	c, store, clock := inMemory(t)
	l := c.begin(body, idempotency.Started).Lease
	c.requests = newCaller(t, alone{store}).requests
	if o := c.begin(body, idempotency.InFlight); !o.Degraded {
		t.Error("it does not say that it was decided by its own records")
	}
	clock.Add(lease)
	for range 3 {
		o, err := c.requests.Begin(t.Context(), c.name, body)
		if o.State == idempotency.Started || !errors.Is(err, throttle.ErrUnavailable) {
			t.Fatalf("state %d, %v", o.State, err)
		}
		c.abandon(o.Lease, false)
	}
	clock.Add(-lease)
	if ok, err := c.requests.HandOver(t.Context(), l); ok || !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("%v, %v", ok, err)
	}
	c.abandon(l, true)
	if o := c.begin(body, idempotency.Started); o.Previous != (throttle.ID{}) {
		t.Errorf("previous %q of what was abandoned", o.Previous)
	}
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
	c, store, _ := inMemory(t)
	hears := c.requests
	c.requests = newCaller(t, lost{store}).requests
	o, err := c.requests.Begin(t.Context(), c.name, body)
	if o.State == idempotency.Started || !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("state %d, %v", o.State, err)
	}
	if ok, err := c.requests.HandOver(t.Context(), o.Lease); ok || err == nil {
		t.Errorf("handed over unheard: %v, %v", ok, err)
	}
	c.requests = hears
	c.begin(body, idempotency.InFlight)
	c.abandon(o.Lease, true)
	c.begin(body, idempotency.Started)
}

// A damaged record is an error, never a request that may be done, and its text names neither caller nor key.
func TestRequests_DamagedRecord_Fails(t *testing.T) {
	c, store, _ := inMemory(t)
	noAnswer := "\x01\x04" + strings.Repeat("t", 16) + string(body[:]) + strings.Repeat("\x00", 8) + "\x7f" + strings.Repeat("\xff", 7) + "damaged"
	for _, damaged := range []string{"damaged", noAnswer} {
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
}
