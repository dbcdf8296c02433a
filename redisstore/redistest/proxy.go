package redistest

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

// FaultyProxy is a proxy before a server. It lets everything pass until told
// otherwise, and one fault is on at a time: each switch takes the place of the
// one before. A switch has taken effect when its method returns.
//
// It reads the Redis protocol, without TLS, and acts on whole commands and
// whole replies. Subscriptions and MONITOR pass, but as they are answered more
// than once, or unasked, do not count replies on their connections.
type FaultyProxy struct {
	Addr string // host:port, to connect to in place of the target's

	t        testing.TB
	target   string
	listener net.Listener
	ended    sync.WaitGroup

	mu       sync.Mutex
	fault    fault
	links    map[*link]struct{}
	closed   bool
	counts   Counts
	commands map[string]int
}

// Counts is what went through a proxy since its start.
type Counts struct {
	Connections int // accepted, also those reset at once
	Lost        int // replies thrown away by CutReplies and DropReplies, as they count
}

type faultKind int

const (
	pass faultKind = iota
	swallow
	cutReplies
	dropReplies
	refuse
	delay
)

type fault struct {
	kind     faultKind
	left     int             // cutReplies, dropReplies: how many more
	commands map[string]bool // cutReplies, dropReplies: of which; empty: of all
	delay    time.Duration
}

// Proxy starts a proxy before target (host:port). The target need not be up: it
// is dialled for each connection when the first command comes.
func Proxy(t testing.TB, target string) *FaultyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", servertest.Port(t))) // nobody else's after Close, either
	if err != nil {
		t.Fatalf("cannot listen for a proxy: %v", err)
	}
	p := &FaultyProxy{
		Addr:     listener.Addr().String(),
		t:        t,
		target:   target,
		listener: listener,
		links:    map[*link]struct{}{},
		commands: map[string]int{},
	}
	p.ended.Add(1)
	go p.accept()
	t.Cleanup(p.Close)
	return p
}

// URL is what a program is configured with to reach the server through here.
func (p *FaultyProxy) URL() string { return "redis://" + p.Addr + "/0" }

// Pass forwards everything. A connection that lost something to an earlier
// fault stays as it is: a stream does not mend.
func (p *FaultyProxy) Pass() { p.set(fault{kind: pass}) }

// Swallow is a network gone silent: connections are accepted and read from, but
// nothing is forwarded either way, and nobody hears of the other's end. A
// connection that lost something stays silent for good; those that were idle
// work again after Pass.
func (p *FaultyProxy) Swallow() { p.set(fault{kind: swallow}) }

// CutReplies loses the next n replies, each along with its connection: the
// server has carried the command out, its reply is thrown away, and the client
// sees the connection reset. Replies before it still arrive.
//
// When the client sees the reset, all commands that were forwarded on that
// connection have been answered by the server; those answers are lost with the
// first and do not count.
//
// With names ("evalsha"), only replies to these commands are lost. That spares
// the greetings (HELLO, CLIENT) by which a client opens each new connection,
// which otherwise count like any other.
func (p *FaultyProxy) CutReplies(n int, commands ...string) {
	p.set(fault{kind: cutReplies, left: n, commands: upperCase(commands)})
}

// DropReplies is like CutReplies, but the client is told nothing: its
// connection stays open and gets no further reply. What it sends on it is still
// carried out.
func (p *FaultyProxy) DropReplies(n int, commands ...string) {
	p.set(fault{kind: dropReplies, left: n, commands: upperCase(commands)})
}

// Refuse resets all connections, those there are and those to come.
func (p *FaultyProxy) Refuse() {
	p.set(fault{kind: refuse})
	for _, l := range p.allLinks() {
		l.reset()
	}
}

// Delay lets commands pass at once and holds each reply for d.
func (p *FaultyProxy) Delay(d time.Duration) { p.set(fault{kind: delay, delay: d}) }

// Counts says what has gone through so far. What a client has received is
// already in it.
func (p *FaultyProxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Commands says how many commands of this name ("evalsha") were forwarded.
func (p *FaultyProxy) Commands(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commands[strings.ToUpper(name)]
}

// Close resets all connections and listens no longer: new ones are refused by
// the kernel. The end of the test does it too.
func (p *FaultyProxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	for _, l := range p.allLinks() {
		l.reset()
	}
	p.ended.Wait()
}

func (p *FaultyProxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if (f.kind == cutReplies || f.kind == dropReplies) && f.left <= 0 {
		f = fault{kind: pass}
	}
	p.fault = f
}

func (p *FaultyProxy) allLinks() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	var links []*link
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *FaultyProxy) accept() {
	defer p.ended.Done()
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		if l := newLink(p, conn.(*net.TCPConn)); p.admit(l) {
			go l.carryCommands()
		} else {
			l.reset()
		}
	}
}

// admit takes a new connection in, or says that it is to be reset.
func (p *FaultyProxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Connections++
	if p.closed || p.fault.kind == refuse {
		return false
	}
	p.links[l] = struct{}{}
	p.ended.Add(1)
	return true
}

// concerns says whether a reply to this command is one to lose.
func (f *fault) concerns(command string) bool {
	return (f.kind == cutReplies || f.kind == dropReplies) &&
		(len(f.commands) == 0 || f.commands[command])
}

func upperCase(names []string) map[string]bool {
	upper := map[string]bool{}
	for _, name := range names {
		upper[strings.ToUpper(name)] = true
	}
	return upper
}
