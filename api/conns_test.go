package api

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
)

// A shortListener has no files left for a while.
type shortListener struct {
	net.Listener
	faults []error
}

func (l *shortListener) Accept() (net.Conn, error) {
	if len(l.faults) == 0 {
		client, server := net.Pipe()
		client.Close()
		return server, nil
	}
	err := l.faults[0]
	l.faults = l.faults[1:]
	return nil, &net.OpError{Op: "accept", Err: err}
}

// doorOf is a door with a listener and so many places.
func doorOf(l net.Listener, places int) *door {
	g := newDoor(places, slog.New(slog.DiscardHandler))
	g.takeIn(l)
	return g
}

// A shortage passes and serving goes on; anything else ends it.
func TestDoorOutlivesAShortage(t *testing.T) {
	broken := errors.New("broken")
	g := doorOf(&shortListener{faults: []error{syscall.EMFILE, syscall.ECONNABORTED, syscall.ENFILE}}, 1)
	c, err := g.Accept()
	if err != nil {
		t.Fatalf("Accept: %v", err)
	}
	c.Close()
	if n := g.count(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
	g = doorOf(&shortListener{faults: []error{broken}}, 1)
	if _, err := g.Accept(); !errors.Is(err, broken) {
		t.Errorf("Accept: %v, want %v", err, broken)
	}
}

// The library ends the process when a deadline cannot be set on a connection.
func TestDeadlinesOfAClosedConnection(t *testing.T) {
	g := doorOf(&shortListener{}, 1)
	c, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	g.cut()
	moment := time.Now().Add(time.Hour)
	if err := errors.Join(c.SetWriteDeadline(moment), c.SetDeadline(moment)); err != nil {
		t.Error(err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("a closed connection was written to")
	}
	c.Close()
}

// A slowListener counts the files of its connections, none of which is closed before it is
// let go.
type slowListener struct {
	shortListener
	files atomic.Int64
	letGo chan struct{}
}

func (l *slowListener) Accept() (net.Conn, error) {
	l.files.Add(1)
	inner, err := l.shortListener.Accept()
	return &slowConn{inner, l}, err
}

type slowConn struct {
	net.Conn
	from *slowListener
}

func (c *slowConn) Close() error {
	<-c.from.letGo
	c.from.files.Add(-1)
	return c.Conn.Close()
}

// However many come at once, no more files are open than there are places, and that of the
// next: a connection that makes room keeps its place until its file is closed.
func TestDoorBoundsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, more = 2, 3
		l := &slowListener{letGo: make(chan struct{})}
		g := doorOf(l, places)
		through := 0
		go func() {
			for range places + more {
				if _, err := g.Accept(); err != nil {
					t.Error(err)
				}
				through++
			}
		}()
		for closed := range more {
			synctest.Wait()
			if files := l.files.Load(); files != places+1 || through != places+closed || g.count() != places {
				t.Errorf("when %d are closed there are %d files, %d of the places are taken and %d came through", closed, files, g.count(), through)
			}
			l.letGo <- struct{}{}
		}
	})
}

// However a connection ends on which nothing was said, it ends in order. Once something
// was, its reader is told what became of it.
func TestEndOfAConnection(t *testing.T) {
	for _, tt := range []struct {
		name  string
		begin func(client net.Conn, c *conn)
		want  error
	}{
		{"silent", func(net.Conn, *conn) {}, io.EOF},
		{"a byte", hear, io.ErrClosedPipe},
		{"a request", func(client net.Conn, c *conn) {
			hear(client, c)
			c.begin()
			isAnswered(c)
		}, io.ErrClosedPipe},
	} {
		client, server := net.Pipe()
		g := doorOf(&shortListener{}, 1)
		c := newConn(server, g)
		c.await()
		g.admit(c)
		tt.begin(client, c)
		if g.admit(newConn(client, g)); g.countGivenUp() != 1 {
			t.Fatalf("%s: it was not given up", tt.name)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != tt.want {
			t.Errorf("%s, and given up: %d bytes and %v, want %v", tt.name, n, err, tt.want)
		}
	}
}

// isAnswered does what an answer does but for the writing, as nobody is there to read it.
func isAnswered(c *conn) {
	c.owes.Store(false)
	c.next()
}

func hear(client net.Conn, c *conn) {
	go client.Write([]byte("G"))
	c.Read(make([]byte, 1))
}

// Who is given up first when there is no room, and that nobody is whose request is
// being answered.
func TestDoorMakesRoom(t *testing.T) {
	g := doorOf(&shortListener{}, 4)
	accept := func() *conn {
		c, err := g.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c.(*conn)
	}
	ask := func(c *conn, owner *caller) {
		if !c.begin() {
			t.Fatal("a connection that is open was given up")
		}
		if owner != nil {
			c.show(owner)
		}
		isAnswered(c)
	}
	shop, blog := new(caller), new(caller)
	first, stranger, silent, last := accept(), accept(), accept(), accept()
	ask(first, shop)
	ask(stranger, nil)
	gone := func(what string, c *conn) {
		t.Helper()
		if c.waiting.Load() != givenUp || c.begin() {
			t.Errorf("%s was not given up", what)
		}
	}
	other := accept()
	gone("the longest silent", silent)
	ask(other, blog)
	another := accept()
	gone("the other silent one", last)
	ask(another, blog)
	more := accept()
	gone("who never showed a key", stranger)
	ask(more, shop)
	ask(more, blog) // behind a proxy
	fourth := accept()
	gone("the longest waiting of the caller that has most", other)
	if shop.connections.Load() != 1 || blog.connections.Load() != 3 {
		t.Errorf("connections are counted as %d and %d, one of which is yet to be closed", shop.connections.Load(), blog.connections.Load())
	}
	if !fourth.begin() || !another.begin() || !more.begin() {
		t.Fatal("one of the rest was given up")
	}
	accept().begin()
	gone("a caller's last, when all others are being answered", first)

	fourth.Conn, _ = net.Pipe() // of which nobody reads the other end
	next := make(chan *conn)
	go func() { next <- accept() }()
	servertest.Eventually(t, "whoever comes next waits", g.wanted.Load)
	select {
	case <-next:
		t.Fatal("there was no room")
	default:
	}
	go fourth.Write([]byte("an answer"))
	select {
	case c := <-next:
		c.Close()
	case <-time.After(10 * time.Second):
		t.Fatal("nobody made room")
	}
	gone("who does not take its answer", fourth)
}
