package cluster_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// What is recorded expires by the server's clock: a mailbox when its newest send has left,
// a meter's state an hour after it says nothing more.
func TestWhatIsRecordedExpires(t *testing.T) {
	server := redistest.Alone(t)
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	now := server.Client().Time(ctx).Val().UnixMilli()
	sent := throttle.Admission{ID: throttle.NewID(), At: now - 30_000}
	record := func(by throttle.Recorder) {
		t.Helper()
		if err := by.Record(ctx, "recorded", sent); err != nil {
			t.Fatal(err)
		}
	}
	record(limiter)
	if at := server.Client().PExpireTime(ctx, "mailgate:{}recorded").Val().Milliseconds(); at < sent.At+86_401_000 || at > sent.At+86_401_000+10_000 {
		t.Errorf("a mailbox expires %d ms after its send", at-sent.At)
	}
	for name, m := range threeMeters {
		record(limiter.Meter(name, m))
		key := "mailgate:" + name + "." + m.Form() + ":{}recorded"
		if left := server.Client().PTTL(ctx, key).Val(); name != "fixed" && (left < 59*time.Minute || left > 63*time.Minute) {
			t.Errorf("%s: expires in %v", name, left)
		}
	}
	admit(t, limiter, "recorded-after")
	if v, err := limiter.Take(ctx, "recorded", throttle.NewID()); err != nil || v.Allowed || v.RetryAt() != sent.At+60_000 {
		t.Errorf("taken after what was recorded: allowed %v, until %d, %v", v.Allowed, v.RetryAt()-sent.At, err)
	}
}

// Many that are recorded at once count as if one was recorded after the other: those of which
// the limit is full, that have left, that are on record and that are ahead of the clock, too.
func TestRecordsManyAtOnce(t *testing.T) {
	server, ctx := redistest.Alone(t), context.Background()
	clock := clocktest.New(1_800_000_000_000)
	limiter := open(t, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient})
	random := rand.New(rand.NewPCG(1, 2))
	most := 0 // bytes
	for _, m := range allMeters(throttle.Tier{Name: "minute", Limit: 300, Window: 60_000}) {
		for round := range 10 {
			clock.Add(random.Int64N(60_000))
			var all []throttle.Admission
			at := clock.Now() - 100_000 - random.Int64N(3)
			for range 1 + random.IntN(400) {
				at += random.Int64N(600)
				all = append(all, throttle.Admission{ID: throttle.NewID(), At: at})
				if random.IntN(10) == 0 {
					all = append(all, all[random.IntN(len(all))])
				}
			}
			one, many := limiter.Meter("one", m), limiter.Meter("many", m)
			for _, a := range all {
				if err := one.Record(ctx, "key", a); err != nil {
					t.Fatal(err)
				}
			}
			if err := many.(interface {
				RecordAll(context.Context, string, []throttle.Admission) error
			}).RecordAll(ctx, "key", all); err != nil {
				t.Fatal(err)
			}
			kept := func(name string) string { return server.Client().Get(ctx, keyOf(name, m, "key")).Val() }
			if want := kept("one"); kept("many") != want {
				t.Fatalf("%s, round %d: %d bytes are kept, and one after the other %d", m.Form(), round, len(kept("many")), len(want))
			}
			most = max(most, len(kept("one")))
			if random.IntN(3) == 0 {
				for _, by := range []throttle.Limiter{one, many} {
					if _, err := by.Reset(ctx, "key"); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if most < 256*14 {
		t.Errorf("no state was long: %d bytes", most)
	}
}

func allMeters(tier throttle.Tier) []meter.Meter {
	return []meter.Meter{
		must(meter.NewFixedWindow(tier)), must(meter.NewSlidingWindow(tier, 0)),
		must(meter.NewTokenBucket(tier, 0)), must(meter.NewLeakyBucket(tier, tier.Limit-1)),
	}
}
