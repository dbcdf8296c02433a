package standby_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// returned is a node whose Redis is back, with so many entries in its journal, each of another mailbox. They are synced once Start
// is called.
func returned(t testing.TB, entries int) *node {
	t.Helper()
	server := redistest.Alone(t)
	n := open(t, t.TempDir(), server.URL())
	n.admit(t, "before", false)
	away(t, server, n)
	var next atomic.Int64
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for n.State().Journal < entries { // a disk that is slow for a second refuses some
				_, _ = n.mailbox.Take(context.Background(), fmt.Sprint("key", next.Add(1)))
			}
		})
	}
	senders.Wait()
	server.Restart()
	servertest.Eventually(t, "Redis to be back", func() bool { return n.State().Away == 0 })
	return n
}

// decide decides one mailbox after another for as long as it may, in turn one of the journal, from its end, and another. It
// returns how long both kinds took, the shortest first.
func (n *node) decide(t testing.TB, entries int, more func(decided int) bool) (took [2][]time.Duration) {
	t.Helper()
	for i := 0; more(i); i++ {
		began := time.Now()
		if v := n.take(t, fmt.Sprint([]string{"key", "other"}[i%2], entries-i)); v.Degraded {
			t.Error("decided alone")
		}
		took[i%2] = append(took[i%2], time.Since(began))
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	return took
}

// decideMeanwhile decides until the journal is synced.
func (n *node) decideMeanwhile(t testing.TB, entries int) [2][]time.Duration {
	t.Helper()
	return n.decide(t, entries, func(int) bool { return n.State().Journal > 0 })
}

// Decisions go on while the journal of an outage is synced: each waits for a small part of it. The part is counted, as
// the time of one decision depends on the machine.
func TestSync_ManyEntries_DecisionsGoOn(t *testing.T) {
	const entries, least = 3000, 10 // so each waits for 300 entries, on average and at most
	n := returned(t, entries)
	n.Start()
	took := n.decideMeanwhile(t, entries)
	if decided := len(took[0]) + len(took[1]); decided < least {
		t.Fatalf("%d decisions were made while %d entries were synced, want %d or more", decided, entries, least)
	}
}

// A decision about a record with many entries waits for all of them.
func TestTake_LongJournalOfOneRecord_DecidedByRedis(t *testing.T) {
	const entries = 600
	server := redistest.Durable(t)
	n := open(t, t.TempDir(), server.URL())
	window := must.Get(throttle.NewFixedWindow(throttle.Tier{Name: "day", Limit: entries + 1, Window: 24 * time.Hour}))(t)
	l := n.Limiter("window", onRedis(t, n.client, "window", window), local.New(n.store.Table("window"), window))
	n.admit(t, "before", false)
	away(t, server, n)
	for range entries {
		must.Get(l.Take(t.Context(), "alice"))(t)
	}
	server.Restart()
	servertest.Eventually(t, "Redis to be back", func() bool { return n.State().Away == 0 })
	if v := must.Get(l.Take(t.Context(), "alice"))(t); !v.Allowed || v.Degraded || v.Remaining() != 0 {
		t.Errorf("%+v, %d left", v, v.Remaining())
	}
}

// BenchmarkSync is how fast the journal of an outage is synced, and how long decisions take meanwhile: own, which wait for
// the entries of their mailbox, and other ones. With -benchtime 499000x it is nearly the longest journal. The floor is what as
// many take without a sync, while this process uses all processors.
func BenchmarkSync(b *testing.B) {
	n := returned(b, b.N)
	left := n.State().Journal
	b.ResetTimer()
	n.Start()
	took := n.decideMeanwhile(b, b.N)
	b.StopTimer()
	b.ReportMetric(float64(left)/b.Elapsed().Seconds(), "synced/s")
	report := func(kind string, took []time.Duration) {
		if len(took) > 0 {
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, kind+"-p99-ms")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, kind+"-longest-ms")
		}
	}
	report("own", took[0])
	report("other", took[1])
	var idle atomic.Bool
	var processors sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		processors.Go(func() {
			for !idle.Load() {
			}
		})
	}
	floor := n.decide(b, -1, func(decided int) bool { return decided < len(took[0])+len(took[1]) })
	report("floor", slices.Sorted(slices.Values(slices.Concat(floor[0], floor[1]))))
	idle.Store(true)
	processors.Wait()
}
