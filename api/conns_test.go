package api

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"
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

// A shortage passes and serving goes on; anything else ends it.
func TestGateOutlivesAShortage(t *testing.T) {
	broken := errors.New("broken")
	g := newGate(&shortListener{faults: []error{syscall.EMFILE, syscall.ECONNABORTED, syscall.ENFILE}}, 1, slog.New(slog.DiscardHandler))
	c, err := g.Accept()
	if err != nil {
		t.Fatalf("Accept: %v", err)
	}
	c.Close()
	if n := g.count(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
	g = newGate(&shortListener{faults: []error{broken}}, 1, slog.New(slog.DiscardHandler))
	if _, err := g.Accept(); !errors.Is(err, broken) {
		t.Errorf("Accept: %v, want %v", err, broken)
	}
}

// The library ends the process when a deadline cannot be set on a connection.
func TestDeadlinesOfAClosedConnection(t *testing.T) {
	g := newGate(&shortListener{}, 1, slog.New(slog.DiscardHandler))
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
