package local_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// What meters had admitted when their process was killed is charged, once each.
func TestKilledProcessForgetsNoState(t *testing.T) {
	if dir := servertest.ChildDir(); dir != "" {
		countUntilKilled(t, dir)
	}
	dir := t.TempDir()
	acknowledged := map[string]string{} // reservation to key
	for round := range 3 {
		before := len(acknowledged)
		killWhileAdmitting(t, dir, acknowledged)
		if len(acknowledged) == before {
			t.Fatalf("round %d: killed before anything was admitted", round)
		}
		compareStates(t, dir, acknowledged)
	}
	t.Logf("%d admissions", len(acknowledged))
}

// countUntilKilled is the child: it prints each admission after the yes.
func countUntilKilled(t *testing.T, dir string) {
	meters := openMeters(t, cachetest.Open(t, dir), local.MetersOptions{Size: small, Now: standing})
	var done sync.WaitGroup
	for range 2 {
		for _, name := range slices.Sorted(maps.Keys(algorithms)) {
			limiter := meters.Limiter("quota", algorithms[name](t, 2))
			done.Go(func() {
				for {
					key, id := name+" "+throttle.NewID().String()+throttle.NewID().String(), throttle.NewID()
					v, err := limiter.Take(context.Background(), key, id)
					if err != nil || !v.Allowed {
						t.Errorf("take: allowed %t, %v", v.Allowed, err)
						return
					}
					fmt.Println(key, "is", id)
				}
			})
		}
	}
	done.Wait()
}

// compareStates expects the one admission of each key, under its id, and no other.
func compareStates(t *testing.T, dir string, acknowledged map[string]string) {
	t.Helper()
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	meters := openMeters(t, disk, local.MetersOptions{Now: standing})
	limiters := map[string]throttle.Limiter{}
	for name, algorithm := range algorithms {
		limiters[name] = meters.Limiter("quota", algorithm(t, 2))
	}
	for text, key := range acknowledged {
		id, err := throttle.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(key, " ")
		for range 2 {
			if take(t, limiters[name], key, id, true); remaining(t, limiters[name], key) != 1 {
				t.Fatalf("%s: %d left, want 1", name, remaining(t, limiters[name], key))
			}
		}
	}
	meters.Close()
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
}
