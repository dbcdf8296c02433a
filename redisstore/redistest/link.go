package redistest

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// link is one client's connection through a proxy, and the server's it leads
// to. Three goroutines work on it: commands up, replies down, and between the
// replies' coming and their going a queue, where a delay is spent.
type link struct {
	proxy  *FaultyProxy
	client *net.TCPConn
	queue  chan reply
	over   chan struct{} // closed with the link
	once   sync.Once

	// Under the proxy's lock, so that a switch and its effect are one step:
	server   *net.TCPConn
	awaiting []string // names of the commands forwarded and not yet answered
	mute     bool     // no more replies to the client
	deaf     bool     // no more commands from it
	doomed   bool     // both, and to be reset when the server has answered all
}

type reply struct {
	frame []byte
	push  bool
	due   time.Time
}

func newLink(p *FaultyProxy, client *net.TCPConn) *link {
	return &link{
		proxy:  p,
		client: client,
		queue:  make(chan reply, 1024),
		over:   make(chan struct{}),
	}
}

func (l *link) carryCommands() {
	defer l.proxy.ended.Done()
	defer l.close()
	in := bufio.NewReaderSize(l.client, 64<<10)
	for {
		batch, names, err := readCommands(in)
		if len(names) > 0 && l.allow(names) && !l.send(batch) {
			l.reset()
			return
		}
		if err != nil {
			l.complain("a client", err)
			return
		}
	}
}

// allow decides whether a batch of these commands is forwarded, and if so expects its replies.
func (l *link) allow(names []string) bool {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.kind == swallow {
		l.deaf, l.mute = true, true
	}
	if l.deaf {
		return false
	}
	l.awaiting = append(l.awaiting, names...)
	for _, name := range names {
		p.commands[name]++
	}
	return true
}

func (l *link) send(batch []byte) bool {
	server, err := l.connected()
	if err != nil {
		return false
	}
	_, err = server.Write(batch)
	return err == nil
}

// connected dials the server when it is first needed.
func (l *link) connected() (*net.TCPConn, error) {
	if l.server != nil { // only this goroutine sets it
		return l.server, nil
	}
	conn, err := net.DialTimeout("tcp", l.proxy.target, 5*time.Second)
	if err != nil {
		return nil, err
	}
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, alive := p.links[l]; !alive {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l.server = conn.(*net.TCPConn)
	p.ended.Add(2)
	go l.readReplies(l.server)
	go l.deliver()
	return l.server, nil
}

func (l *link) readReplies(server *net.TCPConn) {
	defer l.proxy.ended.Done()
	defer close(l.queue)
	in := bufio.NewReaderSize(server, 64<<10)
	for {
		frame, push, err := readReply(in)
		if err != nil {
			l.complain("the server "+l.proxy.target, err)
			return
		}
		select {
		case l.queue <- reply{frame, push, time.Now().Add(l.proxy.currentDelay())}:
		case <-l.over:
			return
		}
	}
}

func (p *FaultyProxy) currentDelay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault.delay
}

func (l *link) deliver() {
	defer l.proxy.ended.Done()
	for r := range l.queue {
		if !l.waitUntil(r.due) {
			return
		}
		deliver, reset := l.judge(r)
		if deliver {
			if _, err := l.client.Write(r.frame); err != nil {
				l.close()
				return
			}
		}
		if reset {
			l.reset()
			return
		}
	}
	l.follow()
}

// follow does to the client what the server did, and ended its connection,
// unless the client is not to know.
func (l *link) follow() {
	switch silent, doomed := l.fate(); {
	case doomed:
		l.reset()
	case !silent:
		l.close()
	}
}

// judge decides, at the moment a reply is to go out, what becomes of it.
func (l *link) judge(r reply) (deliver, reset bool) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.kind == swallow {
		l.deaf, l.mute = true, true
	}
	// An answer nobody waits for is a push, by RESP2's ways.
	if !r.push && len(l.awaiting) > 0 {
		command := l.awaiting[0]
		l.awaiting = l.awaiting[1:]
		if !l.mute && p.fault.concerns(command) {
			l.lose()
		}
	}
	return !l.mute, l.doomed && len(l.awaiting) == 0
}

// lose spends one of the losses that the fault has left. The proxy is locked.
func (l *link) lose() {
	p := l.proxy
	l.mute = true
	if p.fault.kind == cutReplies {
		l.deaf, l.doomed = true, true
	}
	p.counts.Lost++
	if p.fault.left--; p.fault.left == 0 {
		p.fault = fault{kind: pass}
	}
}

// fate says whether the link is cut off from all news, and whether it is to be
// reset.
func (l *link) fate() (silent, doomed bool) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.kind == swallow {
		l.deaf, l.mute = true, true
	}
	return l.deaf && l.mute, l.doomed
}

// waitUntil says false when the link is over before.
func (l *link) waitUntil(due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.over:
		return false
	}
}

// complain fails the test over what is not the Redis protocol; that a
// connection ended is nothing to complain of.
func (l *link) complain(of string, err error) {
	var wrong protocolError
	if errors.As(err, &wrong) {
		l.proxy.t.Errorf("the proxy cannot follow %s: %v", of, wrong)
	}
}

// reset ends the link so that the client sees a reset, not an orderly end.
func (l *link) reset() {
	_ = l.client.SetLinger(0)
	l.close()
}

func (l *link) close() {
	l.once.Do(func() {
		p := l.proxy
		p.mu.Lock()
		delete(p.links, l)
		server := l.server
		p.mu.Unlock()
		close(l.over)
		_ = l.client.Close()
		if server != nil {
			_ = server.Close()
		}
	})
}
