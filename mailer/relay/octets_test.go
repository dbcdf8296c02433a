package relay

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
)

var errCut = errors.New("the connection is cut")

// cutConn passes so many octets on and then fails.
type cutConn struct {
	net.Conn
	left int
}

func (c *cutConn) Write(p []byte) (int, error) {
	n := min(c.left, len(p))
	c.left -= n
	if n == len(p) {
		return c.Conn.Write(p)
	}
	if n > 0 {
		_, _ = c.Conn.Write(p[:n])
	}
	_ = c.Conn.Close()
	return n, errCut
}

// commitCut sends a text over a connection that is cut after so many octets, and returns the
// outcome and what arrived.
func commitCut(t *testing.T, text []byte, after int, secure, trust *tls.Config) (Outcome, []byte) {
	t.Helper()
	here, there := net.Pipe()
	cut := &cutConn{here, math.MaxInt}
	var server, stream net.Conn = there, cut
	if secure != nil {
		server, stream = tls.Server(there, secure), tls.Client(cut, trust)
	}
	arrived := make(chan []byte, 1)
	go func() {
		got := make([]byte, len(stuff(nil, text)))
		n, _ := io.ReadFull(server, got) // the first read shakes hands
		_ = there.Close()                // without an answer
		arrived <- got[:n]
	}()
	if encrypted, ok := stream.(*tls.Conn); ok {
		if err := encrypted.Handshake(); err != nil {
			t.Fatal(err)
		}
	}
	cut.left = after
	c := &conn{relay: &relay{options: Options{}.withDefaults()}}
	c.use(here, stream)
	b, release := newBudget(t.Context(), t.Context(), time.Minute, time.Time{})
	defer release()
	c.enter(b)
	_, failure := c.send(text)
	_ = here.Close()
	return failure.Outcome, <-arrived
}

// Whichever octet the connection is cut at: the outcome is Unavailable only if the relay
// cannot have the end of the email, and Unknown if it has.
func TestCommit_CutAtEachOctet_OutcomeIsExact(t *testing.T) {
	text := []byte("Subject: code\r\n\r\n.123456\r\n")
	wire := stuff(nil, text)
	authority := servertest.NewAuthority(t)
	now := time.Now().UnixMilli()
	secure := &tls.Config{
		Certificates:           []tls.Certificate{authority.Certificate(now-3_600_000, now+3_600_000, "relay.example")},
		SessionTicketsDisabled: true, // they would block the pipe
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	trust := &tls.Config{RootCAs: roots, ServerName: "relay.example"}
	for name, c := range map[string]struct {
		secure *tls.Config
		octets int
	}{"in the clear": {nil, len(wire)}, "under TLS": {secure, len(wire) + 40}} {
		t.Run(name, func(t *testing.T) {
			seen := map[Outcome]int{}
			for after := range c.octets + 1 {
				outcome, arrived := commitCut(t, text, after, c.secure, trust)
				want := Unavailable
				if bytes.Equal(arrived, wire) {
					want = Unknown
				}
				if outcome != want {
					t.Errorf("cut after %d octets: %v, and %d of %d octets arrived", after, outcome, len(arrived), len(wire))
				}
				seen[outcome]++
			}
			if seen[Unavailable] < len(wire) || seen[Unknown] == 0 {
				t.Errorf("the outcomes were %v", seen)
			}
		})
	}
}
