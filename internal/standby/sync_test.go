package standby_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// BenchmarkSync is how fast the journal of an outage is synced, and how long mailboxes wait for their decision meanwhile:
// those of the journal, and others. With -benchtime 499000x it is nearly the longest journal.
func BenchmarkSync(b *testing.B) {
	server := redistest.Alone(b)
	n := open(b, b.TempDir(), server.URL())
	n.admit(b, "before", false)
	away(b, server, n)
	var next atomic.Int64
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for n.State().Journal < b.N { // a disk that is slow for a second refuses some
				_, _ = n.mailbox.Take(context.Background(), fmt.Sprint("key", next.Add(1)))
			}
		})
	}
	senders.Wait()
	left := n.State().Journal
	server.Restart()
	servertest.Eventually(b, "Redis to be back", func() bool { return n.State().Away == 0 })
	b.ResetTimer()
	n.Start()
	var waits []time.Duration
	for i := 0; n.State().Journal > 0; i++ {
		began := time.Now()
		if v := n.take(b, fmt.Sprint([]string{"key", "other"}[i%2], b.N-i)); v.Degraded {
			b.Error("decided alone")
		}
		waits = append(waits, time.Since(began))
	}
	b.StopTimer()
	slices.Sort(waits)
	b.ReportMetric(float64(left)/b.Elapsed().Seconds(), "synced/s")
	if len(waits) > 0 {
		b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
	}
}
