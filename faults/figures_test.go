package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
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
	{"go_memstats_heap_inuse_bytes", 32 << 20},
	{"process_resident_memory_bytes", 500 << 20},
}

// floodHeap is what the buffers of a flood's connections may keep of the heap: two garbage
// collections free them, and an idle node is slow to have two.
const floodHeap = 96 << 20

// idleWithin is how long what has nothing to do may be kept: connections to a relay for
// 30 s, what served connections for 10 s.
const idleWithin = 45 * time.Second

// redisSlack is how many connections more than at first the nodes may keep to Redis.
const redisSlack = 48

// figures are those of every node, and the connections of Redis.
func (s *rig) figures() (all []judge.Figure) {
	for i, n := range s.nodes {
		figures, err := figuresOf(s.caller, n)
		if err != nil {
			s.t.Error(err)
		}
		for _, h := range held {
			if h.name == "go_memstats_heap_inuse_bytes" && s.flooding.Load() > 0 {
				h.slack += floodHeap
			}
			all = append(all, judge.Figure{Name: fmt.Sprintf("%s of node %d", h.name, i), Before: figures[h.name], Slack: h.slack})
		}
	}
	if s.alone != nil {
		clients, err := s.alone.Client().ClientList(context.Background()).Result()
		if err != nil {
			s.t.Error(err)
		}
		all = append(all, judge.Figure{Name: "connections of Redis", Before: float64(strings.Count(clients, "\n")), Slack: redisSlack})
	}
	return all
}

// leftovers compares the figures with those before the load, once there was time for it
// to go.
func (s *rig) leftovers(before []judge.Figure) (found []judge.Violation) {
	for deadline := time.Now().Add(idleWithin); ; time.Sleep(100 * time.Millisecond) {
		s.caller.closeIdle()
		found = since(before, s.figures())
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
	}
}

// since compares figures with the same ones of before.
func since(before, figures []judge.Figure) []judge.Violation {
	for i := range figures {
		figures[i].Before, figures[i].After = before[i].Before, figures[i].Before
	}
	return judge.Leftovers(figures)
}

// journalWithin is how long after the load a journal may have entries: a key whose attempt was
// killed is in flight until its lease ends after 30 s.
const journalWithin = 36 * time.Second

// awaitEmptyJournals waits until every node has told the store all.
func (s *rig) awaitEmptyJournals() []judge.Violation {
	c := newCaller()
	defer c.closeIdle()
	for deadline := time.Now().Add(journalWithin); ; time.Sleep(100 * time.Millisecond) {
		left := ""
		for _, n := range s.nodes {
			figures, err := figuresOf(c, n)
			if err != nil {
				left = err.Error()
			} else if entries := figures["mailgate_store_journal"]; entries != 0 {
				left = fmt.Sprintf("node %d has %g operations in its journal", n.number, entries)
			}
		}
		if left == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return []judge.Violation{{Rule: "journal", What: left}}
		}
	}
}
