package outage_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Together the pair is a limiter like any other, and so it is alone.
func TestConformance(t *testing.T) {
	for name, fault := range map[string]fault{"together": none, "alone": dead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, there := cachetest.Open(t, cache.Memory), cachetest.Open(t, cache.Memory)
			away := new(line)
			away.set(fault)
			watch := openWatch(t, disk, away)
			throttletest.Run(t, func(t testing.TB, p throttle.Policy, now func() int64) throttle.Historian {
				name := throttle.NewID().String()
				s, own := &shared{Survey: named(t, there, name, p, now)}, named(t, disk, name, p, now)
				s.set(fault)
				pair := watch.Historian(name, p.Longest(), s, own)
				if fault == none {
					return pair
				}
				return alone{pair, own}
			}, 500)
		})
	}
}

// A pair that counts by a meter is a limiter like any other, too, whichever algorithm it is.
// Alone it is not quite: a Release says yes for as long as the admission is owed, although
// its meter has forgotten it.
func TestMetersConform(t *testing.T) {
	t.Parallel()
	disk, there := cachetest.Open(t, cache.Memory), cachetest.Open(t, cache.Memory)
	watch := openWatch(t, disk, new(line))
	throttletest.RunMeters(t, throttletest.OneStore(func(t testing.TB, now func() int64) func(meter.Meter) throttle.Limiter {
		name := throttle.NewID().String()
		theirs, ours := namedMeters(t, there, name, now), namedMeters(t, disk, name, now)
		return func(m meter.Meter) throttle.Limiter {
			longest := 2 * max(m.Tier().Window, m.Quota().Window)
			return watch.Limiter(name+"."+m.Form(), longest, theirs.Limiter(name, m), ours.Limiter(name, m))
		}
	}), 5_000)
}

// openWatch is one whose clock stands still, as every limiter of the suite has its own.
func openWatch(t testing.TB, disk *cache.Disk, l *line) *outage.Watch {
	t.Helper()
	w, err := outage.NewWatch(outage.Options{Disk: disk, Away: unavailableIsAway, Shared: l.ready, Now: func() int64 { return start }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	return w
}

func named(t testing.TB, disk *cache.Disk, name string, p throttle.Policy, now func() int64) *local.Limiter {
	l, err := local.New(disk, local.Options{Policy: p, Now: now, Name: name, Size: cache.Size{Entries: 64, Bytes: 1 << 16}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func namedMeters(t testing.TB, disk *cache.Disk, name string, now func() int64) *local.Meters {
	t.Helper()
	m, err := local.NewMeters(disk, local.MetersOptions{Now: now, Name: name, Size: cache.Size{Entries: 64, Bytes: 1 << 16}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// alone is a pair whose shared history never comes back. To reset a key, and to record
// what was admitted elsewhere, it would need that.
type alone struct {
	throttle.Historian
	own *local.Limiter
}

func (a alone) Reset(ctx context.Context, key string) (int, error) { return a.own.Reset(ctx, key) }
