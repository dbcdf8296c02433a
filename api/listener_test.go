package api

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
)

// failing is a listener with these errors before its first connection.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		client, server := net.Pipe()
		client.Close()
		return server, nil
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, &net.OpError{Op: "accept", Err: err}
}

func TestAccept_ShortageOfFiles_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{Listener: &failing{errs: []error{syscall.EMFILE, syscall.ECONNABORTED, syscall.ENFILE}}, log: slog.New(slog.DiscardHandler)}
		c, err := l.Accept()
		if err != nil {
			t.Fatalf("Accept: %v", err)
		}
		c.Close()
		broken := errors.New("broken")
		l.Listener = &failing{errs: []error{broken}}
		if _, err := l.Accept(); !errors.Is(err, broken) {
			t.Errorf("Accept: %v, want %v", err, broken)
		}
	})
}
