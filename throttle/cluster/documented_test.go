package cluster_test

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// What the documentation of package meter says that a key costs in Redis, give or take a
// tenth.
func TestBytesOfAKey(t *testing.T) {
	t.Parallel()
	const name, key = "visitors", "198.51.10.10"
	server, ctx := redistest.Alone(t), context.Background()
	client := server.Client()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(info, "redis_version:7.") {
		t.Skip("the documentation speaks of Redis 7")
	}
	clock := clocktest.New(0)
	hour := throttle.Tier{Name: "hour", Limit: 60, Window: 3_600_000}
	policy, err := throttle.NewPolicy(hour)
	if err != nil {
		t.Fatal(err)
	}
	limiter := open(t, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient})
	for _, tt := range []struct {
		name    string
		limiter throttle.Limiter
		apart   int64 // milliseconds between the sends
	}{
		{"throttle.Policy", limiter.Tiers(name, policy), 0},
		{"FixedWindow", limiter.Meter(name, must(meter.NewFixedWindow(hour))), 0},
		{"SlidingWindow", limiter.Meter(name, must(meter.NewSlidingWindow(hour, 0))), 59_999},
		{"TokenBucket", limiter.Meter(name, must(meter.NewTokenBucket(hour, 0))), 0},
		{"LeakyBucket", limiter.Meter(name, must(meter.NewLeakyBucket(hour, 59))), 0},
	} {
		for sends, want := range documented(t, tt.name) {
			clock.Set(1_800_000_000_000)
			for range sends {
				clock.Add(tt.apart)
				admit(t, tt.limiter, key)
			}
			kept, err := client.Keys(ctx, "*").Result()
			if err != nil || len(kept) != 1 {
				t.Fatalf("%s is kept as %q, %v", tt.name, kept, err)
			}
			got, err := client.MemoryUsage(ctx, kept[0]).Result()
			t.Logf("%s, %d sends: %d bytes", tt.name, sends, got)
			if err != nil || got > want+want/10 || got < want-want/10 {
				t.Errorf("%s, %d sends: %d bytes, %v, and the documentation says %d", tt.name, sends, got, err, want)
			}
			if err := client.Del(ctx, kept[0]).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// documented is what the documentation of package meter says that a key costs in Redis, by
// its number of sends.
func documented(t *testing.T, algorithm string) map[int]int64 {
	t.Helper()
	text, err := os.ReadFile("../meter/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^//\t` + regexp.QuoteMeta(algorithm) + ` +\d+ +(\d+) +\d+ +(\d+)$`).FindSubmatch(text)
	if row == nil {
		t.Fatalf("the documentation does not say what a key of a %s costs", algorithm)
	}
	one, err1 := strconv.ParseInt(string(row[1]), 10, 64)
	sixty, err2 := strconv.ParseInt(string(row[2]), 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return map[int]int64{1: one, 60: sixty}
}
