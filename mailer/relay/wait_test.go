package relay

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/prometheus/client_golang/prometheus"
)

// queued are relays whose only connection is taken until it is released, so that no email gets
// further than the queue, whose clock is the test's own.
func queued(t *testing.T, o Options, waiting int) (begin func(ctx context.Context) *Error, p *pool) {
	t.Helper()
	limits := standard
	o.MaxConns, o.Deadline, o.limits, limits.Waiting = 1, time.Hour, &limits, waiting
	r, err := New([]URL{{host: "relay.example"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	p = r.relays[0].pool
	if _, failure := p.take(t.Context(), time.Now(), "first.example"); failure != nil {
		t.Fatal(failure)
	}
	return func(ctx context.Context) *Error {
		_, err := r.Begin(ctx, Envelope{To: make([]address.Address, 1)})
		failure, _ := errors.AsType[*Error](err)
		return failure
	}, p
}

// endsAs checks how an email ended that came at this moment.
func endsAs(t *testing.T, failure *Error, outcome Outcome, came time.Time, after time.Duration) {
	t.Helper()
	if failure == nil || failure.Outcome != outcome || time.Since(came) != after {
		t.Errorf("after %v: %v, want %s after %v", time.Since(came), failure, outcome, after)
	}
}

// A wait for a connection is bounded in time, in number, and by the caller. The time that is left
// is enough to say so.
func TestPool_Wait_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, p := queued(t, Options{}, 2)
		came := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		go func() { endsAs(t, begin(short), Busy, came, 2700*time.Millisecond) }()
		synctest.Wait()
		full := begin(t.Context()) // for its domain, which has half
		if endsAs(t, full, Busy, came, 0); full.RetryAfter != time.Second {
			t.Errorf("retry after %v", full.RetryAfter)
		}
		time.Sleep(3 * time.Second) // of the test's own clock
		waiter, leave := context.WithCancel(t.Context())
		go func() { endsAs(t, begin(waiter), Unavailable, came, 3*time.Second) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		p.release(nil, "first.example")
		if open, _, waiting := p.counts(); open != 0 || waiting != 0 {
			t.Errorf("%d connections are open, and %d emails wait", open, waiting)
		}
	})
}

func TestPool_Queue_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := queued(t, Options{}, 8)
		domains := []string{"a.example", "b.example", "a.example", "c.example"}
		var served []string
		for _, domain := range domains {
			go func() {
				_, _ = p.take(t.Context(), time.Now().Add(time.Hour), domain)
				served = append(served, domain)
				p.release(nil, domain)
			}()
			synctest.Wait()
		}
		p.release(nil, "first.example")
		synctest.Wait()
		if !slices.Equal(served, domains) {
			t.Errorf("served were %v", served)
		}
	})
}

// Emails that wait under the pace leave at even distances.
func TestPace_Waiting_EvenDistances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mails, apart = 12, 10 * time.Millisecond
		waits := make(chan time.Duration, mails)
		o := Options{Pace: Pace{PerSecond: 100, Queue: mails}, Metrics: NewMetrics(nil)}
		o.Metrics.Paced = prometheus.ObserverFunc(func(waited float64) { waits <- time.Duration(waited * float64(time.Second)) })
		begin, _ := queued(t, o, 2)
		ctx, cancel := context.WithCancel(t.Context())
		for range mails {
			go begin(ctx)
		}
		for n := range mails {
			if waited := (<-waits).Round(time.Microsecond); waited != time.Duration(n)*apart {
				t.Errorf("email %d waited %v, want %v", n, waited, time.Duration(n)*apart)
			}
		}
		cancel()
	})
}

// A full queue, and a wait of more than the caller's time, are told at once.
func TestPace_NoRoomOrTime_BusyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, _ := queued(t, Options{Pace: Pace{PerSecond: 0.01, Queue: 1}}, 8)
		came := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		go begin(ctx) // takes the first moment
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Second+usefulTime/2)
		defer cancel()
		endsAs(t, begin(impatient), Busy, came, 0)
		go func() { endsAs(t, begin(ctx), Unavailable, came, 0) }()
		synctest.Wait()
		full := begin(t.Context())
		if endsAs(t, full, Busy, came, 0); full.RetryAfter != 100*time.Second {
			t.Errorf("retry after %v, want 100 s", full.RetryAfter)
		}
		leave()
	})
}
