package memory_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

// What the documentation of package meter says of memory, give or take a tenth, and no
// goroutine for a key.
func TestBytesOfAKey(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("the documentation speaks of 64 bits")
	}
	hour := throttle.Tier{Name: "hour", Limit: 60, Window: 3_600_000}
	fixed, err1 := meter.NewFixedWindow(hour)
	sliding, err2 := meter.NewSlidingWindow(hour, 0)
	token, err3 := meter.NewTokenBucket(hour, 0)
	leaky, err4 := meter.NewLeakyBucket(hour, 59)
	policy, err5 := throttle.NewPolicy(hour)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			t.Fatal(err)
		}
	}
	names := make([]string, 10_000) // the same for all
	for i := range names {
		names[i] = fmt.Sprintf("198.51.%d.%d", i/256, i%256)
	}
	clock := clocktest.New(start)
	o := memory.Options{Now: clock.Now}
	count := func(m meter.Meter) func() throttle.Limiter {
		return func() throttle.Limiter { return memory.New(m, o) }
	}
	for _, tt := range []struct {
		name  string
		open  func() throttle.Limiter
		apart int64 // milliseconds between one key's sends
	}{
		{"throttle.Policy", func() throttle.Limiter { return memory.NewTiers(policy, o) }, 0},
		{"FixedWindow", count(fixed), 0},
		{"SlidingWindow", count(sliding), 59_999},
		{"TokenBucket", count(token), 0},
		{"LeakyBucket", count(leaky), 0},
	} {
		for sends, want := range documented(t, tt.name) {
			clock.Set(start - start%hour.Window)
			before, running := heap(), runtime.NumGoroutine()
			l := tt.open()
			keys := len(names) / (1 + sends/12)
			for range sends {
				clock.Add(tt.apart)
				for _, name := range names[:keys] {
					if v, _ := take(t, l, name); !v.Allowed {
						t.Fatalf("%s: key %s is denied", tt.name, name)
					}
				}
			}
			got := (heap() - before) / uint64(keys)
			t.Logf("%s, %d sends: %d bytes a key", tt.name, sends, got)
			if got > want+want/10 || got < want-want/10 {
				t.Errorf("%s, %d sends: %d bytes a key, and the documentation says %d", tt.name, sends, got, want)
			}
			if n := runtime.NumGoroutine() - running; n > 0 {
				t.Errorf("%s, %d sends: %d goroutines for %d keys", tt.name, sends, n, keys)
			}
			runtime.KeepAlive(l)
			runtime.KeepAlive(names)
		}
	}
}

// documented is what the documentation of package meter says that a key costs in a process,
// by its number of sends.
func documented(t *testing.T, algorithm string) map[int]uint64 {
	t.Helper()
	text, err := os.ReadFile("../meter/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^//\t` + regexp.QuoteMeta(algorithm) + ` +(\d+) +\d+ +(\d+) +\d+$`).FindSubmatch(text)
	if row == nil {
		t.Fatalf("the documentation does not say what a key of a %s costs", algorithm)
	}
	one, err1 := strconv.ParseUint(string(row[1]), 10, 64)
	sixty, err2 := strconv.ParseUint(string(row[2]), 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return map[int]uint64{1: one, 60: sixty}
}
