package main

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	steadyRate        = 1_000 // sends a second
	steadyConnections = 64    // to mailgate, and to the relay
	steadySends       = 5_000 // in a round; after 2,000 the log of the store begins anew
)

// steadily measures how long a send takes at a steady rate, whether or not the ones before are answered: the time
// from when it was due. Beside it is the time for handing the same email to the relay without mailgate.
func steadily(b *bench) []row {
	relay, redis := b.openSink(), b.startRedis()
	onDisk, _ := b.newDataDir()
	flushed, _ := b.newDataDir()
	homes := []struct {
		name     string
		settings []string
		bounds   []bound // of p99 and p99.9 in milliseconds
	}{
		{"in memory", []string{"MAILGATE_DATA_DIR=:memory:"}, nil},
		{"on disk", []string{onDisk}, []bound{atMost(3.5), atMost(8)}},
		{"on disk, flushed", []string{flushed, "MAILGATE_SYNC=true"}, nil},
		{"on Redis", []string{"MAILGATE_REDIS_URL=redis://" + redis.addr, "MAILGATE_SECRET=bench-0c51e6a2f74b"}, nil},
	}
	var sides []side
	for _, home := range homes {
		p := b.startMailgate(relay.addr, append(home.settings, "MAILGATE_SMTP_MAX_CONNS=64")...)
		first := int64(0) // of a round, whose connections are new, as mailgate closes those that were idle meanwhile
		open := func(connections int) *load {
			return b.openLoad(p.addr, connections, sendCode(func(n int64) int64 { return first + n }), http.StatusOK)
		}
		open(1).send(1)
		sides = append(sides, func() sample {
			first += steadySends
			return open(steadyConnections).steady()
		})
	}
	length := int(relay.octets.Load() / relay.mails.Load())
	samples := alternate(*rounds, append(sides, b.openMail(relay.addr, steadyConnections, length).steady)...)
	direct := samples[len(homes)]
	var rows []row
	for i, home := range homes {
		name := "send at 1,000/s " + home.name
		for rank, of := range []string{"p50", "p99", "p99.9"} {
			measure := func(s sample) float64 { return s.ranks[rank] }
			rows = append(rows, compare(name+", "+of, "ms", "relay without mailgate", measure, samples[i], direct, bound{}))
			if rank > 0 && home.bounds != nil {
				limit := home.bounds[rank-1].ratio
				rows = append(rows, compareFixed(name+", "+of, "ms", "required", measures(samples[i], measure), limit, atMost(1)))
			}
		}
	}
	return rows
}

// steady is a side that sends at a steady rate. A send that is late because all connections are in use is late.
func (l *load) steady() sample {
	began, took, errs := time.Now(), make([]time.Duration, steadySends), make([]error, len(l.connections))
	var next atomic.Int64
	var wait sync.WaitGroup
	for i, c := range l.connections {
		wait.Go(func() {
			for n := next.Add(1) - 1; n < steadySends && errs[i] == nil; n = next.Add(1) - 1 {
				due := began.Add(time.Duration(n) * time.Second / steadyRate)
				time.Sleep(time.Until(due))
				errs[i] = l.ask(c, l.next.Add(1)-1)
				took[n] = time.Since(due)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		check(err)
	}
	slices.Sort(took)
	s := sample{rate: steadySends / time.Since(began).Seconds()}
	for i, rank := range []int64{500, 990, 999} {
		s.ranks[i] = took[steadySends*rank/1000].Seconds() * 1000
	}
	return s
}
