package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// keyOf is where a meter's limiter of the default prefix keeps a key.
func keyOf(name string, m meter.Meter, key string) string {
	return "mailgate:" + name + "." + m.Form() + ":{}" + key
}

// full takes three.
func full(t *testing.T, limiter throttle.Limiter, key string) {
	t.Helper()
	for range 3 {
		admit(t, limiter, key)
	}
}

// By the server's clock every key goes a second after it has nothing more to say, which the
// meter knows of a state that is counted alongside.
func TestMetersKeysExpire(t *testing.T) {
	server := redistest.Alone(t)
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	for name, m := range threeMeters {
		by, alongside := limiter.Meter(name, m), new(meter.State)
		look := func(step string) {
			t.Helper()
			at := server.Client().PExpireTime(ctx, keyOf(name, m, "expiry")).Val().Milliseconds()
			if alongside.Count == 0 {
				if at > 0 {
					t.Errorf("%s, %s: the key is there", name, step)
				}
				return
			}
			if late := at - m.Expires(alongside); late < 1000 || late > 1500 {
				t.Errorf("%s, %s: it expires %d ms late", name, step, late)
			}
		}
		for round := range 20 {
			var last throttle.Verdict
			var ids []throttle.ID
			for range 1 + round%5 {
				id := throttle.NewID()
				for range 2 {
					last = take(t, by, "expiry", id)
					if r, _ := m.Take(alongside, id, last.Now); r.Allowed != last.Allowed {
						t.Fatalf("%s: allowed %v, alongside %v", name, last.Allowed, r.Allowed)
					}
					look("taken")
				}
				if last.Allowed {
					ids = append(ids, id)
				}
			}
			if round%3 == 0 && len(ids) > 0 {
				if released, err := by.Release(ctx, "expiry", ids[0]); err != nil {
					t.Error(err)
				} else if released {
					m.Release(alongside, ids[0], last.Now)
				}
				look("released")
			}
			if round%7 == 6 {
				by.Reset(ctx, "expiry")
				*alongside = meter.State{}
				look("reset")
			}
		}
	}
}

func TestMetersForeignValueIsAnError(t *testing.T) {
	server := redistest.Alone(t)
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	for name, m := range threeMeters {
		key, by := keyOf(name, m, "foreign"), limiter.Meter(name, m)
		for what, write := range map[string][]any{
			"another type":            {"ZADD", key, "1", "x"},
			"a short string":          {"SET", key, "1"},
			"a head of no use":        {"SET", key, "\x00\x01 "},
			"a head that is cut":      {"SET", key, "\x00\x0a    "},
			"a long head that is cut": {"SET", key, "\x80\x0a    "},
			"a sum that is wrong":     {"SET", key, "\x00\x0e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x01"},
			"text":                    {"SET", key, strings.Repeat("text ", 10_000)},
			"a head longer than all":  {"SET", key, "\xff\xff" + strings.Repeat("\x00", 100)},
		} {
			server.Client().Del(ctx, key)
			if err := server.Client().Do(ctx, write...).Err(); err != nil {
				t.Fatal(err)
			}
			if v, err := by.Peek(ctx, "foreign"); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
				t.Errorf("%s, %s: peek says %v, %v", name, what, v.Allowed, err)
			}
			if v, err := by.Take(ctx, "foreign", throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
				t.Errorf("%s, %s: take says %v, %v", name, what, v.Allowed, err)
			}
		}
	}
}

// What changes a long state in place is confirmed as well, and its repetition, which finds it on
// record.
func TestALongStateIsConfirmed(t *testing.T) {
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	limiter := open(t, redisstore.Options{URL: master.URL(), Confirm: 1, Timeout: time.Second})
	m := must(meter.NewFixedWindow(throttle.Tier{Name: "decade", Limit: 5000, Window: throttle.MaxWindow}))
	by := limiter.Meter("long", m)
	for range 300 {
		admit(t, by, "confirmed")
	}
	replica.Pause()
	id := throttle.NewID()
	for _, what := range []string{"new", "repeated"} {
		if v, err := by.Take(context.Background(), "confirmed", id); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
			t.Errorf("a %s admission without its replica: allowed %v, %v", what, v.Allowed, err)
		}
	}
	replica.Resume()
	if v := take(t, by, "confirmed", id); !v.Allowed || v.Tiers()[0].Remaining != 5000-301 {
		t.Errorf("once the replica is back: allowed %v, %v", v.Allowed, v.Tiers())
	}
	ctx, key := context.Background(), keyOf("long", m, "confirmed")
	if kept := master.Client().Get(ctx, key).Val(); kept == "" || kept != replica.Client().Get(ctx, key).Val() {
		t.Error("the replica has another state")
	}
	master.Client().Persist(ctx, key)
	if take(t, by, "confirmed", id); master.Client().PTTL(ctx, key).Val() < 0 {
		t.Error("repeated: nothing was written")
	}
}

// The 8 characters of an id may stand anywhere in a state: across the border of the
// head and an admission, or in an admission's time.
func TestAMetersIDIsFoundOnlyInItsPlace(t *testing.T) {
	clock := clocktest.New(0x01a3_61626364) // the last four bytes are "abcd"
	limiter := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Clock: clock.Now, Timeout: patient})
	known, _ := throttle.ParseID("ABCDEFGH")
	ctx := context.Background()
	for name, m := range threeMeters {
		by := limiter.Meter(name, m)
		for _, text := range []string{"abcdABCD", "bcdABCDE", "cdABCDEF", "dABCDEFG"} {
			id, err := throttle.ParseID(text)
			if err != nil {
				t.Fatal(err)
			}
			take(t, by, text, known)
			if left := take(t, by, text, id).Tiers()[0].Remaining; left != 1 {
				t.Errorf("%s, id %s: %d left after it and another", name, text, left)
			}
			if released, err := by.Release(ctx, text, throttle.ID([]byte("cd"+text[:6]))); released || err != nil {
				t.Errorf("%s: what is on record nowhere was given back: %v", name, err)
			}
			if left := take(t, by, text, known).Tiers()[0].Remaining; left != 1 {
				t.Errorf("%s: the id on record is not found", name)
			}
		}
	}
	// Found at the second place where its characters stand, also if that is the next.
	for now, other := range map[int64]string{0x01a3_41424344: "ABCDABCD", 0x01a3_61626341: "AAAAAAAA"} {
		clock.Set(now)
		other := throttle.ID([]byte(other))
		for name, m := range threeMeters {
			by := limiter.Meter(name, m)
			take(t, by, other.String(), known) // nobody looks into the time of the first
			take(t, by, other.String(), other)
			if left := take(t, by, other.String(), other).Tiers()[0].Remaining; left != 1 {
				t.Errorf("%s: %s on record is not found behind a place that looks like it", name, other)
			}
			if released, err := by.Release(ctx, other.String(), other); !released || err != nil {
				t.Errorf("%s: released %v, %v", name, released, err)
			}
		}
	}
}

func TestKeysOfViews(t *testing.T) {
	server := redistest.Alone(t)
	fixed := threeMeters["fixed"]
	hourly := throttletest.Policy(t, "hour=2/1h")
	for prefix, want := range map[string][]string{
		"":       {"mailgate:ip.fixed-60000:{}k", "mailgate:ip:{}k", "mailgate:{}k"},
		"acme:":  {"acme:ip.fixed-60000:k", "acme:ip:k", "acme:k"},
		"{acme}": {"{acme}ip.fixed-60000:k", "{acme}ip:k", "{acme}k"},
	} {
		limiter := open(t, redisstore.Options{URL: server.URL(), Prefix: prefix, Timeout: patient})
		server.Client().FlushAll(context.Background())
		admit(t, limiter.Meter("ip", fixed), "k")
		admit(t, limiter.Tiers("ip", hourly), "k")
		admit(t, limiter, "k")
		got := server.Client().Keys(context.Background(), "*").Val()
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("prefix %q: keys %q, want %q", prefix, got, want)
		}
	}
}

// A limit can be changed while requests under the old one finish.
func TestViewsShareWhatIsOnRecord(t *testing.T) {
	clock := clocktest.New(1_800_000_000_000)
	limiter := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Clock: clock.Now, Timeout: patient})
	admit(t, limiter, "shared")
	twice := throttletest.Policy(t, "minute=2/60s")
	if v := take(t, limiter.Tiers("", twice), "shared", throttle.NewID()); !v.Allowed || v.Tiers()[0].Remaining != 0 {
		t.Errorf("the second under a policy of two: %v, %v", v.Allowed, v.Tiers())
	}
	if v := take(t, limiter.Tiers("own", twice), "shared", throttle.NewID()); !v.Allowed || v.Tiers()[0].Remaining != 1 {
		t.Errorf("the first of histories with a name: %v, %v", v.Allowed, v.Tiers())
	}
	full(t, limiter.Meter("shared", threeMeters["sliding"]), "shared")
	four := must(meter.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 4, Window: 60_000}, 0))
	if v := take(t, limiter.Meter("shared", four), "shared", throttle.NewID()); !v.Allowed || v.Tiers()[0].Remaining != 0 {
		t.Errorf("the fourth under a limit of four: %v, %v", v.Allowed, v.Tiers())
	}
	if v := take(t, limiter.Meter("shared", threeMeters["fixed"]), "shared", throttle.NewID()); v.Tiers()[0].Remaining != 2 {
		t.Errorf("a meter of another form does not begin anew: %v", v.Tiers())
	}
}

// What the documentation says of memory.
func TestMemoryOfAMeter(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	clock := clocktest.New(1_800_000_000_000)
	limiter := open(t, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient})
	for _, load := range []struct{ limit, taken, most int }{{100, 100, 2100}, {1_000_000, 2000, 58_000}} {
		tier := throttle.Tier{Name: "minute", Limit: load.limit, Window: 60_000}
		meters := []meter.Meter{
			must(meter.NewFixedWindow(tier)), must(meter.NewSlidingWindow(tier, 0)),
			must(meter.NewTokenBucket(tier, 0)), must(meter.NewLeakyBucket(tier, load.limit-1)),
			must(meter.NewSlidingWindow(tier, meter.MaxParts)),
		}
		if testing.Short() && load.taken > 100 {
			meters = meters[3:] // those that take most
		}
		for _, m := range meters {
			key := fmt.Sprint("of", load.limit)
			bytes, most := int64(0), int64(load.most)
			if load.limit == 100 && strings.Contains(m.String(), "1000 parts") {
				most += 4 * meter.MaxParts * 2
			}
			for i := range load.taken {
				clock.Set(1_800_000_000_000)
				if _, parts := m.(meter.SlidingWindow); parts {
					clock.Add(int64(i * 59_000 / load.taken)) // into all of them
				}
				admit(t, limiter.Meter("memory", m), key)
				if i%16 == 15 {
					bytes = max(bytes, server.Client().MemoryUsage(context.Background(), keyOf("memory", m, key)).Val())
				}
			}
			t.Logf("%s: up to %d bytes", m, bytes)
			if bytes > most {
				t.Errorf("%s: %d bytes", m, bytes)
			}
		}
	}
}
