package api

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// A request that comes on a connection which has just been given up, and is not closed yet, is
// not carried out, and has no answer that could be taken for a yes.
func TestNoAnswerWhenGivenUp(t *testing.T) {
	for name, give := range map[string]bool{"given up": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			client, c := throughADoor(t)
			if give && !c.giveUp() {
				t.Fatal("it is not given up")
			}
			carriedOut := false
			server := &fasthttp.Server{
				Handler: begun(func(*fasthttp.RequestCtx) { carriedOut = true }),
				Logger:  unheard{},
			}
			served := make(chan struct{})
			go func() {
				defer close(served)
				_ = server.ServeConn(c)
				c.Close()
			}()
			if _, err := io.WriteString(client, "POST /send-code HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(client)
			<-served
			if carriedOut == give || (len(answer) == 0) != give {
				t.Errorf("carried out: %t, and answered %q", carriedOut, answer)
			}
		})
	}
}

// throughADoor is a connection, and its client's end.
func throughADoor(t *testing.T) (client net.Conn, c *conn) {
	client, inner := net.Pipe()
	t.Cleanup(func() { client.Close() })
	accepted, err := doorOf(&oneListener{conn: inner}, 1).Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, accepted.(*conn)
}

// A oneListener has one connection.
type oneListener struct {
	net.Listener
	conn net.Conn
}

func (l *oneListener) Accept() (net.Conn, error) { return l.conn, nil }

// unheard is a library's log that nobody reads.
type unheard struct{}

func (unheard) Printf(string, ...any) {}

// An answer that is made and not sent, as some of the next request came with the one before,
// is waited for: else a mail would be sent and nobody told.
func TestAnAnswerThatIsNotSentYet(t *testing.T) {
	client, c := throughADoor(t)
	if !c.begin() {
		t.Fatal("the request does not begin")
	}
	c.next()
	if c.giveUp() {
		t.Fatal("it is given up with an answer that nobody has")
	}
	go io.Copy(io.Discard, client)
	if _, err := c.Write([]byte("the answer")); err != nil {
		t.Fatal(err)
	}
	if !c.giveUp() {
		t.Error("it does not make room when the answer is sent")
	}
}

// timed tells until when a connection may be read.
type timed struct {
	net.Conn
	until time.Time
}

func (c *timed) SetReadDeadline(t time.Time) error {
	c.until = t
	return nil
}

func (c *timed) SetWriteDeadline(time.Time) error { return nil }

func (c *timed) Write(b []byte) (int, error) { return len(b), nil }

// While an answer is held back the next request has little time, and all of its own when the
// answer is sent.
func TestAnAnswerIsNotHeldBackForLong(t *testing.T) {
	inner := &timed{}
	accepted, err := doorOf(&oneListener{conn: inner}, 1).Accept()
	if err != nil {
		t.Fatal(err)
	}
	c, long, soon := accepted.(*conn), time.Now().Add(time.Hour), time.Now()
	isUntil := func(what string, want time.Time) {
		t.Helper()
		if !inner.until.Equal(want) {
			t.Errorf("%s it may be read until %v, want %v", what, inner.until, want)
		}
	}
	c.SetReadDeadline(long)
	isUntil("before a request", long)
	c.begin()
	c.next()
	c.SetReadDeadline(soon)
	isUntil("where there was less time anyway", soon)
	before := time.Now()
	c.SetReadDeadline(long)
	if left := time.Until(inner.until); left > heldBack {
		t.Errorf("an answer is held back for %v", left)
	}
	if has := inner.until.Sub(before); has < 500*time.Millisecond {
		t.Errorf("the next request has %v", has)
	}
	if _, err := c.Write([]byte("the answer")); err != nil {
		t.Fatal(err)
	}
	isUntil("when the answer is sent", long)
}
