package faults_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// metrics are the figures of a node, by their names and labels.
type metrics map[string]float64

// beside is the name of a figure that metricsOf adds: the goroutines beside those of connections.
const beside = "goroutines"

func (s *rig) metricsOf(n *node) (metrics, error) {
	r := s.ask(n, "GET", "/metrics", "", "")
	if r.status != 200 {
		return nil, fmt.Errorf("the metrics of node %d: %d, %w", n.number, r.status, r.err)
	}
	all := metrics{}
	for line := range strings.Lines(string(r.text)) {
		line = strings.TrimSpace(line)
		space := max(0, strings.LastIndexByte(line, ' '))
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[space:]), 64); err == nil {
			all[line[:space]] = value
		}
	}
	all[beside] = all["go_goroutines"] - all["mailgate_http_connections"]
	return all, nil
}

// sum is that of a metric over its labels.
func (m metrics) sum(name string) (n float64) {
	for sample, value := range m {
		if of, _, _ := strings.Cut(sample, "{"); of == name {
			n += value
		}
	}
	return n
}

// held is a figure that must come back to where it was, and how far from there it may be.
type held struct {
	name  string
	slack float64
}

const (
	heap  = "go_memstats_heap_inuse_bytes"
	files = "process_open_fds"
)

var (
	// resources: connections to relays and to Redis are kept for the next email, and the race
	// detector keeps what it needed when most goroutines were at work, which the heap does not.
	resources = []held{
		{files, 40},
		{"mailgate_http_connections", 1},
		{"mailgate_relay_connections", 16}, // of two relays
		{"mailgate_relay_waiting", 0},
		{heap, 32 << 20},
		{"process_resident_memory_bytes", 500 << 20},
	}
	// goroutines: some begin with the first call to each Redis server, and asking for the figures
	// has one or two.
	goroutines = []held{{beside, 8}}
)

// sentinelFiles is how many idle connections a node keeps to a Sentinel, which it asks before it connects to a master.
const sentinelFiles = 32

// floodHeap is what the buffers of a flood's connections may keep of the heap: two garbage
// collections free them, and an idle node is slow to have two.
const floodHeap = 96 << 20

// figures are these, of every node.
func (s *rig) figures(of []held) (all []judge.Figure) {
	for _, n := range s.nodes {
		m, err := s.metricsOf(n)
		if err != nil {
			s.t.Error(err)
		}
		for _, h := range of {
			if h.name == heap && s.flooding.Load() > 0 {
				h.slack += floodHeap
			}
			if h.name == files && s.sentinel != nil {
				h.slack += sentinelFiles
			}
			all = append(all, judge.Figure{Name: fmt.Sprintf("%s of node %d", h.name, n.number), Value: m.sum(h.name), Slack: h.slack})
		}
	}
	return all
}

// idleWithin is how long what has nothing to do may be kept: connections to a relay for
// 30 s, what served connections for 10 s.
const idleWithin = 45 * time.Second

// leftovers compares the figures with those before the load, once there was time for it to go.
func (s *rig) leftovers() []judge.Violation {
	found := awaitNone(func() []judge.Violation {
		s.client.CloseIdleConnections()
		return judge.Leftovers(s.figuresBefore, s.figures(resources))
	})
	// A goroutine that has served a connection waits for the next for up to 20 s. Idle
	// connections give all of them one, so that the run need not wait.
	var idle []net.Conn
	defer func() {
		for _, conn := range idle {
			conn.Close()
		}
	}()
	return append(found, awaitNone(func() []judge.Violation {
		left := judge.Leftovers(s.goroutinesBefore, s.figures(goroutines))
		for _, n := range s.nodes {
			for range some {
				if left != nil && len(idle) < maxIdle*len(s.nodes) {
					idle = append(idle, n.dial())
				}
			}
		}
		return left
	})...)
}

const (
	some    = 64   // connections to a node at a time
	maxIdle = 2500 // more than a node can have served at once in any run
)

// awaitNone looks until nothing is found or the time is over.
func awaitNone(look func() []judge.Violation) []judge.Violation {
	for deadline := time.Now().Add(idleWithin); ; time.Sleep(50 * time.Millisecond) {
		found := look()
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
	}
}

// awaitEmptyJournals waits until every node has told the store all: a key whose attempt was killed
// is in flight until its lease ends after 30 s.
func (s *rig) awaitEmptyJournals() []judge.Violation {
	return awaitNone(func() (left []judge.Violation) {
		for _, n := range s.nodes {
			m, err := s.metricsOf(n)
			if entries := m.sum("mailgate_store_journal"); err != nil || entries != 0 {
				left = append(left, judge.Violation{Rule: "journal", What: fmt.Sprintf("node %d has %g operations in its journal, %v", n.number, entries, err)})
			}
		}
		return left
	})
}
