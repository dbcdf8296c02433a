package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

// However late it is for the key of an attempt, the place is given back: it is the attempt's
// own. The key may be somebody else's by then, and is left alone.
func TestRefundAfterItsKey(t *testing.T) {
	r, log := openRefunds(t)
	tries := 0
	r.now(context.Background(), refund{key: &attempt{requestID: "late", until: time.Now().Add(-time.Second)}, release: func(context.Context) error {
		if tries++; tries == 1 {
			return errors.New("the store is away")
		}
		return nil
	}})
	r.close(context.Background())
	if said := log.String(); tries != 2 || strings.Contains(said, "given back") || strings.Count(said, "request_id=late") != 1 {
		t.Errorf("after %d tries the log says\n%s", tries, said)
	}
}

// stuck is a limiter that gives nothing back.
type stuck struct{ throttle.Limiter }

func (stuck) Release(context.Context, string, throttle.ID) (bool, error) {
	return false, errors.New("the store is away")
}

// What an operator resets is a subject of an action, so the log names the action as well.
func TestARefundGivenUpNamesItsAction(t *testing.T) {
	r, log := openRefunds(t)
	r.later(actionRefund(actionRequest{name: "login", limiter: stuck{}, subject: "user-4711"}, &call{subject: "41b0a8c2f7", id: throttle.NewID()}))
	r.close(context.Background())
	if said := log.String(); !strings.Contains(said, "given back") || !strings.Contains(said, " action=login subject=41b0a8c2f7 id=") {
		t.Errorf("the log says\n%s", said)
	}
}

// What fails goes behind the others, which may need another store, and holds none of them up.
func TestARefundThatFailsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := openRefunds(t)
		const away = 3
		all, given := make(chan struct{}), false
		for range away {
			r.later(refund{id: throttle.NewID(), release: func(context.Context) error {
				<-all
				return errors.New("one store is away")
			}})
		}
		r.later(refund{release: func(context.Context) error {
			given = true
			return nil
		}})
		close(all)
		synctest.Wait()
		if !given {
			t.Error("the other waits")
		}
		time.Sleep(refundLife + 2*refundPause) // of the test's own clock
		synctest.Wait()
		if said := log.String(); strings.Count(said, "could not be given back") != away {
			t.Errorf("after its life the log says\n%s", said)
		}
		r.close(context.Background())
	})
}

// A request whose time is up gives back what it charged before it is answered.
func TestARefundOutlivesItsRequest(t *testing.T) {
	r, _ := openRefunds(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tries := 0
	r.now(ctx, refund{release: func(ctx context.Context) error {
		tries++
		return ctx.Err()
	}})
	r.close(context.Background())
	if tries != 1 {
		t.Errorf("it took %d tries", tries)
	}
}

// A lost keeper keeps no answer, since the lease is another's.
type lost struct {
	idempotency.Keeper
	tries int
}

func (l *lost) Finish(context.Context, idempotency.Lease, idempotency.Answer) (bool, error) {
	l.tries++
	return false, nil
}

// A lease that is lost does not come back, so the answer is given up at once.
func TestAnAnswerWhoseLeaseIsLostIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers lost
		r, log := openRefundsWith(t, Options{Repeats: Repeats{Answers: &answers}})
		r.later(refund{key: &attempt{answer: new(idempotency.Answer), until: time.Now().Add(time.Minute)}})
		synctest.Wait()
		if said := log.String(); answers.tries != 1 || strings.Count(said, "an answer could not be kept") != 1 {
			t.Errorf("after %d tries the log says\n%s", answers.tries, said)
		}
		r.close(context.Background())
	})
}

// At the end each is tried once more, whatever became of those before it, unless there is no
// time left.
func TestRefundsAtTheEnd(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, log := openRefunds(t)
				tries := 0
				for range 3 {
					r.later(refund{id: throttle.NewID(), release: func(ctx context.Context) error {
						tries++
						return hang(ctx)
					}})
				}
				synctest.Wait() // the first is being tried
				ctx, cancel := context.WithTimeout(context.Background(), 2*refundRest)
				defer cancel()
				want := 4 // the first once before, and each once
				if late {
					cancel()
					want = 1
				}
				r.close(ctx)
				r.cut(context.Background())
				if said := log.String(); tries < want || late && tries > want || strings.Count(said, "could not be given back") != 3 {
					t.Errorf("after %d tries the log says\n%s", tries, said)
				}
			})
		})
	}
}

// A store that hangs holds the end up for a while only, however many wait for it and however
// much time there is.
func TestRefundsAtAnEndWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 1000
		r, log := openRefunds(t)
		for range waiting {
			r.later(refund{id: throttle.NewID(), release: hang})
		}
		synctest.Wait() // the first is being tried
		began := time.Now()
		r.close(context.Background())
		if took := time.Since(began); took > refundRest+r.longest {
			t.Errorf("it took %v", took)
		}
		if told := strings.Count(log.String(), "could not be given back"); told != waiting {
			t.Errorf("the log tells of %d", told)
		}
	})
}

// waited is what a store leaves in a context of Patience that has waited for it.
type waited struct{}

// A store that hangs and has something in its place is told to give back all that is left: it is
// waited for once, and for long enough to learn that it hangs.
func TestRefundsAtTheEndGoOnAlone(t *testing.T) {
	for _, hangs := range []time.Duration{3 * time.Second, 12 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r, log := openRefundsWith(t, Options{StorePatience: hangs + time.Second, Patience: func(ctx context.Context) context.Context {
				return context.WithValue(ctx, waited{}, new(bool))
			}})
			for range 4 {
				r.later(refund{release: func(ctx context.Context) error {
					if waits := ctx.Value(waited{}).(*bool); !*waits {
						*waits = true
						time.Sleep(hangs) // of the test's own clock
					}
					return ctx.Err()
				}})
			}
			r.close(context.Background())
			if log.Len() > 0 {
				t.Errorf("where a store hangs for %v the log says\n%s", hangs, log)
			}
		})
	}
}

// The last try under a lease ends with it, and not when somebody else may have begun.
func TestATryEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := openRefundsWith(t, Options{StorePatience: 10 * time.Second})
		until := time.Now().Add(3 * time.Second)
		var ended time.Time
		r.later(refund{key: &attempt{until: until}, release: func(ctx context.Context) error {
			if ended.IsZero() {
				<-ctx.Done()
				ended = time.Now()
			}
			return ctx.Err()
		}})
		r.close(context.Background())
		if !ended.Equal(until) {
			t.Errorf("it ended at %v, and the lease at %v", ended, until)
		}
	})
}

// hang is what a store does that never answers.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// openRefunds are of a server that keeps no answers, and write to the log.
func openRefunds(t *testing.T) (*refunds, *bytes.Buffer) {
	t.Helper()
	return openRefundsWith(t, Options{})
}

func openRefundsWith(t *testing.T, o Options) (*refunds, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	o = o.withDefaults()
	m, err := newMetrics(o, newDoor(1, o.Log))
	if err != nil {
		t.Fatal(err)
	}
	return newRefunds(o, m), log
}
