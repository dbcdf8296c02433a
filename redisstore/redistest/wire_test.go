package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wire is a connection spoken to by hand, to see exactly what arrives.
type wire struct {
	t  *testing.T
	c  net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, addr string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &wire{t, c, bufio.NewReader(c)}
}

func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.c, text); err != nil {
		w.t.Fatal(err)
	}
}

// hears expects these lines, without their line ends.
func (w *wire) hears(lines ...string) {
	w.t.Helper()
	for _, want := range lines {
		_ = w.c.SetReadDeadline(time.Now().Add(5 * time.Second))
		got, err := w.in.ReadString('\n')
		if err != nil || strings.TrimSpace(got) != want {
			w.t.Fatalf("heard %q, %v; want %q", got, err, want)
		}
	}
}

// hearsReset expects the connection to be reset, with nothing before.
func (w *wire) hearsReset() {
	w.t.Helper()
	_ = w.c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if got, err := w.in.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		w.t.Fatalf("heard %q, %v; want a reset", got, err)
	}
}

// hearsNothing expects silence on an open connection.
func (w *wire) hearsNothing(d time.Duration) {
	w.t.Helper()
	_ = w.c.SetReadDeadline(time.Now().Add(d))
	if got, err := w.in.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("heard %q, %v; want silence", got, err)
	}
}
