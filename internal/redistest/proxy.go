package redistest

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
)

// FaultyProxy is a proxy before a server. It forwards everything until told otherwise, and
// one fault is on at a time.
type FaultyProxy struct {
	Addr string // host:port, to connect to in place of the target's

	target string

	mu    sync.Mutex
	fault fault
	left  int    // how many more replies to lose
	lost  int    // how many replies and messages were lost so far
	word  []byte // part of what is lost, or of the commands whose replies are, in lower case
	links map[*link]bool
	sent  []byte // all that clients sent, in lower case
}

type fault int

const (
	none    fault = iota
	cut           // the next replies are lost, and their connections
	drop          // the next replies are lost
	swallow       // everything is, and connections stay open
	refuse        // connections are reset
)

// link is a connection of a client, and the one to the server behind it.
type link struct {
	client, server *net.TCPConn
	loses          fault // cut or drop: the next reply is lost
	silent         bool  // has lost something in a swallow, and stays silent
}

// Proxy starts a proxy before target (host:port).
func Proxy(t testing.TB, target string) *FaultyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", servertest.Port(t)))
	if err != nil {
		t.Fatal(err)
	}
	p := &FaultyProxy{Addr: listener.Addr().String(), target: target, links: map[*link]bool{}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client.(*net.TCPConn))
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		p.Refuse()
	})
	return p
}

// URL returns what a program is configured with to reach the server through the proxy.
func (p *FaultyProxy) URL() string { return "redis://" + p.Addr + "/0" }

// Pass forwards everything again. A connection that was swallowed stays silent.
func (p *FaultyProxy) Pass() { p.set(none, 0, "") }

// CutReplies loses the replies to the next n commands that contain the word, such as a key. The server has carried
// each command out, and its client sees a reset.
func (p *FaultyProxy) CutReplies(n int, word string) { p.set(cut, n, word) }

// DropReplies loses replies as CutReplies does, but connections stay open: the client waits until
// its timeout.
func (p *FaultyProxy) DropReplies(n int, word string) { p.set(drop, n, word) }

// Lost returns how many replies and messages were lost so far.
func (p *FaultyProxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Swallow simulates a silent network: connections are accepted and read from, and nothing is
// forwarded in either direction.
func (p *FaultyProxy) Swallow() { p.set(swallow, 0, "") }

// Refuse resets all connections, those there are and those to come.
func (p *FaultyProxy) Refuse() {
	p.set(refuse, 0, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

func (p *FaultyProxy) set(f fault, left int, word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.left, p.word = f, left, bytes.ToLower([]byte(word))
}

// Sent returns how often clients have sent the word, in any case.
func (p *FaultyProxy) Sent(word string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Count(p.sent, bytes.ToLower([]byte(word)))
}

// reset ends the link so that the client sees a reset, not an orderly end.
func (l *link) reset() {
	_ = l.client.SetLinger(0)
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

func (p *FaultyProxy) serve(client *net.TCPConn) {
	l := &link{client: client}
	server, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		l.reset()
		return
	}
	l.server = server.(*net.TCPConn)
	p.mu.Lock()
	p.links[l] = true
	if p.fault == refuse {
		l.reset()
	}
	p.mu.Unlock()
	go p.carry(l.server, l.client, func(b []byte) bool { return p.passesReply(l, b) })
	p.carry(l.client, l.server, func(b []byte) bool { return p.passesCommand(l, b) })
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// carry copies what passes until one side has ended, and ends the other.
func (p *FaultyProxy) carry(from, to *net.TCPConn, passes func([]byte) bool) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && passes(buffer[:n]) {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *FaultyProxy) passesCommand(l *link, sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lower := bytes.ToLower(sent)
	p.sent = append(p.sent, lower...)
	if p.left > 0 && bytes.Contains(lower, p.word) {
		p.left--
		p.lost++
		l.loses = p.fault
	}
	l.silent = l.silent || p.fault == swallow
	return !l.silent
}

func (p *FaultyProxy) passesReply(l *link, sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lost := l.loses
	if lost == cut {
		l.reset()
	}
	l.loses = none
	l.silent = l.silent || p.fault == swallow
	return lost == none && !l.silent
}
