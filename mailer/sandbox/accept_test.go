package sandbox

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// shortListener fails a few times before it accepts.
type shortListener struct {
	net.Listener
	faults []error
}

func (l *shortListener) Accept() (net.Conn, error) {
	if len(l.faults) > 0 {
		err := l.faults[0]
		l.faults = l.faults[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

// TestAShortageOfFilesPasses, and the sandbox goes on accepting.
func TestAShortageOfFilesPasses(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	faults := []error{syscall.EMFILE, syscall.ECONNABORTED}
	s := startOn(&shortListener{Listener: inner, faults: faults}, Options{}.withDefaults())
	defer s.Close()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Errorf("nobody answers: %v", err)
	}
}
