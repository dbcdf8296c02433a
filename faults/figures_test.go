package faults_test

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

// figuresOf are a node's metrics, each summed over its labels.
func figuresOf(c *caller, n *node) (map[string]float64, error) {
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
			name, _, _ := strings.Cut(line[:space], "{")
			all[name] += value
		}
	}
	return all, nil
}

// held are the figures that must come back to where they were, and how far from there
// they may be: relays and Redis keep connections for the next mail.
var held = []struct {
	name  string
	slack float64
}{
	{"go_goroutines", 40},
	{"process_open_fds", 40},
	{"mailgate_http_connections", 1},
	{"mailgate_relay_connections", 16}, // of two relays
	{"mailgate_relay_waiting", 0},
	{"process_resident_memory_bytes", 200 << 20},
}

// figures are those of every node, in order.
func (s *stand) figures(l *load) (all []map[string]float64) {
	for _, n := range s.nodes {
		figures, err := figuresOf(l.caller, n)
		if err != nil {
			s.t.Error(err)
		}
		all = append(all, figures)
	}
	return all
}

// leftovers compares the nodes with what they were before the load, once there was time
// for it to go.
func (s *stand) leftovers(l *load, before []map[string]float64) (found []judge.Violation) {
	for deadline := time.Now().Add(wellWithin); ; time.Sleep(100 * time.Millisecond) {
		l.caller.hangUp()
		found = judge.Leftovers(s.compare(before, s.figures(l)))
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
	}
}

func (s *stand) compare(before, after []map[string]float64) (all []judge.Figure) {
	for i := range after {
		for _, h := range held {
			all = append(all, judge.Figure{Name: fmt.Sprintf("%s of node %d", h.name, i),
				Before: before[i][h.name], After: after[i][h.name], Slack: h.slack})
		}
	}
	return all
}

// awaitNoDebts waits until no node has a debt to the store.
func (s *stand) awaitNoDebts() []judge.Violation {
	c := newCaller()
	defer c.hangUp()
	for deadline := time.Now().Add(wellWithin); ; time.Sleep(100 * time.Millisecond) {
		owing := ""
		for _, n := range s.nodes {
			figures, err := figuresOf(c, n)
			if err != nil {
				owing = err.Error()
			} else if debts := figures["mailgate_store_debts"]; debts != 0 {
				owing = fmt.Sprintf("node %d has %g debts", n.number, debts)
			}
		}
		if owing == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return []judge.Violation{{Rule: "debts", What: owing}}
		}
	}
}
