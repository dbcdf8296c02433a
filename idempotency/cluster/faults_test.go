package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/cluster"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

const racers = 64

var (
	defaults = idempotency.Terms{}
	request  = idempotency.Fingerprint{1}
	sent     = idempotency.Answer{Status: 200, Body: []byte(`{"status":"sent"}`)}
)

func nameOf(key string) idempotency.Name { return idempotency.Name{Caller: "website", Key: key} }

func begin(t testing.TB, keeper *cluster.Keeper, key string) idempotency.Outcome {
	t.Helper()
	o, err := keeper.Begin(context.Background(), nameOf(key), request)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func expect(t testing.TB, keeper *cluster.Keeper, key string, want idempotency.State) idempotency.Outcome {
	t.Helper()
	o := begin(t, keeper, key)
	if o.State != want {
		t.Fatalf("%v, want %v", o.State, want)
	}
	return o
}

// race lets 64 begin at once, and returns how many were told to go on, and the last lease.
func race(t testing.TB, keeper *cluster.Keeper, key string) (started int, lease idempotency.Lease) {
	var (
		done sync.WaitGroup
		mu   sync.Mutex
	)
	for range racers {
		done.Go(func() {
			o, err := keeper.Begin(context.Background(), nameOf(key), request)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("begin: %v", err)
			}
			if o.State == idempotency.Started {
				started, lease = started+1, o.Lease
			}
		})
	}
	done.Wait()
	return started, lease
}

// everyStep takes each step once, so that the server knows the scripts.
func everyStep(t testing.TB, keeper *cluster.Keeper) {
	t.Helper()
	lease := expect(t, keeper, "warm", idempotency.Started).Lease
	if freed, err := keeper.Abandon(context.Background(), lease); !freed || err != nil {
		t.Fatalf("abandon: %t, %v", freed, err)
	}
	if kept, err := keeper.Finish(context.Background(), lease, sent); !kept || err != nil {
		t.Fatalf("finish: %t, %v", kept, err)
	}
}

// The answers to some steps are lost after Redis has taken them. The keeper asks again,
// and tells what it would have told.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	keeper := open(t, defaults, redisstore.Options{URL: proxy.URL(), Timeout: patient})
	ctx := context.Background()
	everyStep(t, keeper)
	const rounds = 100
	for round := range rounds {
		key := fmt.Sprint("lost-", round)
		proxy.CutReplies(2, "evalsha")
		started, lease := race(t, keeper, key)
		if started != 1 {
			t.Fatalf("round %d: %d were told to go on, want 1", round, started)
		}
		proxy.CutReplies(1, "evalsha")
		if freed, err := keeper.Abandon(ctx, lease); !freed || err != nil {
			t.Fatalf("abandon: %t, %v", freed, err)
		}
		proxy.CutReplies(1, "evalsha")
		lease = expect(t, keeper, key, idempotency.Started).Lease
		proxy.CutReplies(1, "evalsha")
		if kept, err := keeper.Finish(ctx, lease, sent); !kept || err != nil {
			t.Fatalf("finish: %t, %v", kept, err)
		}
		proxy.CutReplies(1, "evalsha")
		if o := expect(t, keeper, key, idempotency.Replay); string(o.Answer.Body) != string(sent.Body) {
			t.Fatalf("replay of %q", o.Answer.Body)
		}
	}
	if lost := proxy.Counts().Lost; lost < 5*rounds {
		t.Errorf("only %d replies were lost: the test shows too little", lost)
	}
}

// A server that hangs and comes back gives no lease to callers who have gone. What they
// wanted to be kept is kept all the same.
func TestWhatComesTooLate(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	keeper := open(t, defaults, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	everyStep(t, keeper)
	done, given := expect(t, keeper, "done", idempotency.Started).Lease, expect(t, keeper, "given-up", idempotency.Started).Lease
	// Each has a connection of its own, and knows the server's clock.
	hasty := map[string]*cluster.Keeper{}
	for _, what := range []string{"begin", "finish", "abandon"} {
		hasty[what] = open(t, defaults, redisstore.Options{URL: server.URL(), Timeout: 250 * time.Millisecond})
		for err := idempotency.ErrUnavailable; err != nil; {
			_, err = hasty[what].Begin(ctx, nameOf("warm"), request)
		}
	}
	server.Pause()
	if o, err := hasty["begin"].Begin(ctx, nameOf("late"), request); !errors.Is(err, idempotency.ErrUnavailable) || o.State == idempotency.Started {
		t.Errorf("begin: %v, %v", o.State, err)
	}
	if kept, err := hasty["finish"].Finish(ctx, done, sent); kept || !errors.Is(err, idempotency.ErrUnavailable) {
		t.Errorf("finish: %t, %v", kept, err)
	}
	if freed, err := hasty["abandon"].Abandon(ctx, given); freed || !errors.Is(err, idempotency.ErrUnavailable) {
		t.Errorf("abandon: %t, %v", freed, err)
	}
	server.Resume()
	expect(t, keeper, "late", idempotency.Started)
	expect(t, keeper, "done", idempotency.Replay)
	expect(t, keeper, "given-up", idempotency.Started)
}

// With replicas to confirm, what they do not have is not answered for. To be told no needs
// none.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	keeper := open(t, shortLease, redisstore.Options{URL: master.URL(), Confirm: 1, Timeout: 3 * time.Second})
	ctx := context.Background()
	var first idempotency.Outcome
	for tries := 0; first.State != idempotency.Started; tries++ { // until the replica is there
		var err error
		if first, err = keeper.Begin(ctx, nameOf("first"), request); err != nil && tries == 100 {
			t.Fatal(err)
		}
	}
	if n := len(replica.Client().Keys(ctx, "*").Val()); n != 1 {
		t.Errorf("%d leases at the replica, want 1", n)
	}
	for tries, kept := 0, false; !kept; tries++ { // a busy machine may be late
		var err error
		if kept, err = keeper.Finish(ctx, first.Lease, sent); err != nil && tries == 100 {
			t.Fatal(err)
		}
	}
	replica.Pause()
	second, err := keeper.Begin(ctx, nameOf("second"), request)
	if !errors.Is(err, idempotency.ErrUnavailable) || second.State == idempotency.Started {
		t.Errorf("begin: %v, %v", second.State, err)
	}
	if kept, err := keeper.Finish(ctx, first.Lease, sent); kept || !errors.Is(err, idempotency.ErrUnavailable) {
		t.Errorf("finish: %t, %v", kept, err)
	}
	expect(t, keeper, "first", idempotency.Replay)
	replica.Resume()
	takenBack(t, keeper, second.Lease)
}

// takenBack takes back what has begun unheard, and begins anew at once. Each may come to
// nothing on a busy machine.
func takenBack(t *testing.T, keeper *cluster.Keeper, lease idempotency.Lease) {
	t.Helper()
	for range 100 {
		if _, err := keeper.Abandon(context.Background(), lease); err != nil {
			continue
		}
		o, err := keeper.Begin(context.Background(), lease.Name, lease.Body)
		if err != nil {
			lease = o.Lease
			continue
		}
		if o.State != idempotency.Started {
			t.Errorf("what has begun unheard is %v", o.State)
		}
		return
	}
	t.Error("it cannot be taken back")
}

func TestErrorsNameNobody(t *testing.T) {
	t.Parallel()
	keeper := open(t, defaults, redisstore.Options{URL: redistest.Alone(t, "rename-command EVALSHA hidden").URL(), Timeout: patient})
	ctx := context.Background()
	lease := idempotency.Lease{Name: nameOf("8e03978e"), Body: request, Token: idempotency.NewToken()}
	_, begun := keeper.Begin(ctx, lease.Name, request)
	_, finished := keeper.Finish(ctx, lease, sent)
	_, abandoned := keeper.Abandon(ctx, lease)
	for call, err := range map[string]error{"begin": begun, "finish": finished, "abandon": abandoned} {
		if !errors.Is(err, idempotency.ErrUnavailable) || strings.Contains(err.Error(), "website") || strings.Contains(err.Error(), "8e03978e") || strings.Contains(err.Error(), "sent") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// A request is done by one of 64 who ask until there is an answer, though the server
// forgets its scripts.
func TestRaceThroughAScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	keeper := open(t, defaults, redisstore.Options{URL: server.URL(), Timeout: patient})
	for round := range 50 {
		key := fmt.Sprint("flush-", round)
		var did atomic.Int64
		var done sync.WaitGroup
		for range racers {
			done.Go(func() {
				for {
					o := begin(t, keeper, key)
					switch o.State {
					case idempotency.Started:
						did.Add(1)
						if kept, err := keeper.Finish(context.Background(), o.Lease, sent); !kept || err != nil {
							t.Errorf("finish: %t, %v", kept, err)
						}
						return
					case idempotency.Replay:
						return
					}
				}
			})
		}
		if err := server.Client().ScriptFlush(context.Background()).Err(); err != nil {
			t.Error(err)
		}
		done.Wait()
		if did.Load() != 1 {
			t.Fatalf("round %d: done %d times", round, did.Load())
		}
	}
}
