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

	target   string
	listener net.Listener

	mu       sync.Mutex
	mode     mode
	left     int    // of lose and drop: how many more replies
	lost     int    // how many replies were lost so far
	word     []byte // of lose and drop: part of the commands whose replies are lost, in lower case
	delay    time.Duration
	links    map[*link]bool
	commands []byte // all that clients sent, in lower case
	accepted int
}

type mode int

const (
	pass    mode = iota
	lose         // the next replies, and their connections
	drop         // the next replies
	swallow      // everything, without a word
	refuse       // connections
)

// link is one connection of a client, and the one to the server that it leads to.
type link struct {
	client, server *net.TCPConn
	losing         bool // the next reply is lost, and the connection with it
	dropping       bool // the next reply is lost
	silent         bool // has lost something, and stays silent
}

// Proxy starts a proxy before target (host:port).
func Proxy(t testing.TB, target string) *FaultyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", servertest.Port(t)))
	if err != nil {
		t.Fatal(err)
	}
	p := &FaultyProxy{Addr: listener.Addr().String(), target: target, listener: listener, links: map[*link]bool{}}
	go p.accept()
	t.Cleanup(p.Close)
	return p
}

// URL is what a program is configured with to reach the server through the proxy.
func (p *FaultyProxy) URL() string { return "redis://" + p.Addr + "/0" }

// Pass forwards everything again. A connection that lost something stays silent.
func (p *FaultyProxy) Pass() { p.set(pass, 0, "", 0) }

// CutReplies loses the replies to the next n commands that contain the word, such as "evalsha",
// each with its connection: the server has carried the command out, and the client sees a reset.
func (p *FaultyProxy) CutReplies(n int, word string) { p.set(lose, n, word, 0) }

// DropReplies is CutReplies with connections that stay open: the client waits in vain.
func (p *FaultyProxy) DropReplies(n int, word string) { p.set(drop, n, word, 0) }

// Lost is how many replies CutReplies and DropReplies have lost so far.
func (p *FaultyProxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Swallow is a network that has gone silent: connections are accepted and read from, and
// nothing is forwarded in either direction.
func (p *FaultyProxy) Swallow() { p.set(swallow, 0, "", 0) }

// Delay forwards commands at once and holds each reply back for so long.
func (p *FaultyProxy) Delay(d time.Duration) { p.set(pass, 0, "", d) }

// Refuse resets all connections, those there are and those to come.
func (p *FaultyProxy) Refuse() {
	p.set(refuse, 0, "", 0)
	p.resetAll()
}

func (p *FaultyProxy) set(m mode, left int, word string, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode, p.left, p.word, p.delay = m, left, bytes.ToLower([]byte(word)), delay
}

// Sent is how often clients have sent the word, in whatever case.
func (p *FaultyProxy) Sent(word string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Count(p.commands, bytes.ToLower([]byte(word)))
}

// Connections is how many connections clients have made.
func (p *FaultyProxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Close resets all connections and listens no longer.
func (p *FaultyProxy) Close() {
	p.set(refuse, 0, "", 0)
	_ = p.listener.Close()
	p.resetAll()
}

func (p *FaultyProxy) resetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// reset ends the link so that the client sees a reset, not an orderly end.
func (l *link) reset() {
	_ = l.client.SetLinger(0)
	_ = l.client.Close()
	_ = l.server.Close()
}

func (p *FaultyProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client.(*net.TCPConn))
	}
}

func (p *FaultyProxy) serve(client *net.TCPConn) {
	server, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server.(*net.TCPConn)}
	p.mu.Lock()
	p.accepted++
	p.links[l] = true
	if p.mode == refuse {
		l.reset()
	}
	p.mu.Unlock()
	go p.carry(l.server, l.client, func([]byte) bool { return p.reply(l) })
	p.carry(l.client, l.server, func(b []byte) bool { return p.command(l, b) })
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// carry copies what allowed admits until one side has ended, and ends the other.
func (p *FaultyProxy) carry(from, to *net.TCPConn, allowed func([]byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && allowed(buffer[:n]) {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = to.Close()
}

// command decides whether what a client sent is forwarded.
func (p *FaultyProxy) command(l *link, sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lower := bytes.ToLower(sent)
	p.commands = append(p.commands, lower...)
	if (p.mode == lose || p.mode == drop) && p.left > 0 && bytes.Contains(lower, p.word) {
		p.left--
		p.lost++
		l.losing, l.dropping = p.mode == lose, p.mode == drop
	}
	l.silent = l.silent || p.mode == swallow
	return !l.silent
}

// reply decides whether what the server sent is forwarded, and spends the delay.
func (p *FaultyProxy) reply(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delay := p.delay; delay > 0 {
		p.mu.Unlock()
		time.Sleep(delay)
		p.mu.Lock()
	}
	if l.losing {
		l.reset()
	}
	l.silent = l.silent || p.mode == swallow
	dropped := l.dropping
	l.dropping = false
	return !l.silent && !l.losing && !dropped
}
