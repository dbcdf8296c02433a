package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

// figuresOf are a node's metrics, each summed over its labels.
func figuresOf(c *caller, n *node) (map[string]float64, error) {
	samples, err := samplesOf(c, n)
	all := map[string]float64{}
	for sample, value := range samples {
		name, _, _ := strings.Cut(sample, "{")
		all[name] += value
	}
	return all, err
}

// samplesOf are a node's metrics, under their names and labels.
func samplesOf(c *caller, n *node) (map[string]float64, error) {
	r := c.ask("GET", *n.url.Load()+"/metrics", "", "")
	if r.status != 200 {
		return nil, fmt.Errorf("the metrics of node %d: %d, %w", n.number, r.status, r.err)
	}
	all := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(r.text)); lines.Scan(); {
		line := lines.Text()
		space := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || space < 0 {
			continue
		}
		if value, err := strconv.ParseFloat(line[space+1:], 64); err == nil {
			all[line[:space]] = value
		}
	}
	return all, nil
}

// held are the figures that must come back to where they were, and how far from there
// they may be: connections to relays and to Redis are kept for the next email, and the race
// detector keeps what it needed when most goroutines were at work, which the heap does not.
var held = []struct {
	name  string
	slack float64
}{
	{"process_open_fds", 40},
	{"mailgate_http_connections", 1},
	{"mailgate_relay_connections", 16}, // of two relays
	{"mailgate_relay_waiting", 0},
	{heap, 32 << 20},
	{"process_resident_memory_bytes", 500 << 20},
}

const (
	heap = "go_memstats_heap_inuse_bytes"
	// floodHeap is what the buffers of a flood's connections may keep of the heap: two garbage
	// collections free them, and an idle node is slow to have two.
	floodHeap = 96 << 20
	// redisSlack is how many connections more than at first the nodes may keep to Redis.
	redisSlack = 48
	// goroutinesSlack is how many goroutines a node may have more than before the load, beside
	// those of its connections: some begin with the first call to each Redis server, and asking
	// for the figures has one or two.
	goroutinesSlack = 8
)

// figures are those of every node, and the connections of Redis.
func (s *rig) figures() (all []judge.Figure) {
	for _, n := range s.nodes {
		figures, err := figuresOf(s.caller, n)
		if err != nil {
			s.t.Error(err)
		}
		for _, h := range held {
			if h.name == heap && s.flooding.Load() > 0 {
				h.slack += floodHeap
			}
			all = append(all, judge.Figure{Name: fmt.Sprintf("%s of node %d", h.name, n.number), Value: figures[h.name], Slack: h.slack})
		}
	}
	if s.alone != nil {
		clients, err := s.alone.Client().ClientList(context.Background()).Result()
		if err != nil {
			s.t.Error(err)
		}
		all = append(all, judge.Figure{Name: "connections of Redis", Value: float64(strings.Count(clients, "\n")), Slack: redisSlack})
	}
	return all
}

// goroutines are how many each node has beside those of its connections.
func (s *rig) goroutines() (all []judge.Figure) {
	for _, n := range s.nodes {
		figures, err := figuresOf(s.caller, n)
		if err != nil {
			s.t.Error(err)
		}
		beside := figures["go_goroutines"] - figures["mailgate_http_connections"]
		all = append(all, judge.Figure{Name: fmt.Sprintf("goroutines of node %d", n.number), Value: beside, Slack: goroutinesSlack})
	}
	return all
}

// idleWithin is how long what has nothing to do may be kept: connections to a relay for
// 30 s, what served connections for 10 s.
const idleWithin = 45 * time.Second

// leftovers compares the figures with those before the load, once there was time for it to go.
func (s *rig) leftovers() []judge.Violation {
	found := awaitNone(func() []judge.Violation {
		s.caller.closeIdle()
		return judge.Leftovers(s.figuresBefore, s.figures())
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
		left := judge.Leftovers(s.goroutinesBefore, s.goroutines())
		if left != nil && len(idle) < maxIdle*len(s.nodes) {
			idle = append(idle, s.idleConns()...)
		}
		return left
	})...)
}

// maxIdle is more connections than a node can have served at once in any run.
const maxIdle = 2500

// awaitNone looks until nothing is found or the time is over.
func awaitNone(look func() []judge.Violation) []judge.Violation {
	for deadline := time.Now().Add(idleWithin); ; time.Sleep(50 * time.Millisecond) {
		found := look()
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
	}
}

// idleConns makes some more connections to every node.
func (s *rig) idleConns() (all []net.Conn) {
	const some = 64
	for _, n := range s.nodes {
		for range some {
			conn, err := net.Dial("tcp", strings.TrimPrefix(*n.url.Load(), "http://"))
			if err != nil {
				s.t.Error(err)
				return all
			}
			all = append(all, conn)
		}
	}
	return all
}

// awaitEmptyJournals waits until every node has told the store all: a key whose attempt was killed
// is in flight until its lease ends after 30 s.
func (s *rig) awaitEmptyJournals() []judge.Violation {
	c := newCaller()
	defer c.closeIdle()
	return awaitNone(func() (left []judge.Violation) {
		for _, n := range s.nodes {
			figures, err := figuresOf(c, n)
			if entries := figures["mailgate_store_journal"]; err != nil || entries != 0 {
				left = append(left, judge.Violation{Rule: "journal", What: fmt.Sprintf("node %d has %g operations in its journal, %v", n.number, entries, err)})
			}
		}
		return left
	})
}
