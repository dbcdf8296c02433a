package faults_test

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

// goroutinesSlack is how many goroutines a node may have more than before the load, beside those
// of its connections: some begin with the first call to each Redis server, and asking
// for the figures has one or two.
const goroutinesSlack = 8

// goroutines are how many each node has beside those of its connections.
func (s *rig) goroutines() (all []judge.Figure) {
	for i, n := range s.nodes {
		figures, err := figuresOf(s.caller, n)
		if err != nil {
			s.t.Error(err)
		}
		beside := figures["go_goroutines"] - figures["mailgate_http_connections"]
		all = append(all, judge.Figure{Name: fmt.Sprintf("goroutines of node %d", i), Before: beside, Slack: goroutinesSlack})
	}
	return all
}

// leftGoroutines finds those that are left of the load. One that has served a connection waits for
// the next for up to 20 s; idle connections give all of them one, so that the run need not wait.
func (s *rig) leftGoroutines(before []judge.Figure) (found []judge.Violation) {
	var idleConns []net.Conn
	defer func() {
		for _, conn := range idleConns {
			conn.Close()
		}
	}()
	for deadline := time.Now().Add(idleWithin); ; time.Sleep(50 * time.Millisecond) {
		found = since(before, s.goroutines())
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
		if len(idleConns) < maxIdle*len(s.nodes) {
			idleConns = append(idleConns, s.idleConns()...)
		}
	}
}

// maxIdle is more connections than a node can have served at once in any run.
const maxIdle = 2500

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
