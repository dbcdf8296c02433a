package submission_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/submission"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// What is between an email and its end leaves no connection and no charge behind.
func TestSTARTTLS_BetweenChunks_ConnectionEnds(t *testing.T) {
	t.Parallel()
	r := start(t, setup{hurry: func(t *submission.Times) { t.Arrival = time.Minute }})
	c := r.signedIn()
	c.to(alice)
	c.write("BDAT 10\r\n0123456789")
	c.reads("")
	c.secure()
	c.Close()
	servertest.Eventually(t, "the connection has ended", func() bool { return r.Connections() == 0 })
	r.charged(alice, 0)
	r.sent(0)
}

// A chunk is no part of an email and no command, whatever is in it and behind it in one packet.
func TestBDAT_NotOffered_NextEmailIsSent(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=500/1h"})
	for i := range 30 {
		for _, chunk := range []string{"BDAT 0\r\n", "BDAT 0 LAST\r\n", "BDAT 6 LAST\r\nQUIT\r\n"} {
			c := r.signedIn()
			c.to(bob)
			c.write(chunk + "RSET\r\n")
			c.reads("502 5.5.1")
			c.reads("250")
			c.to(alice)
			c.data(strings.Replace(letter, "<1@", fmt.Sprintf("<%d.%d@", i, len(chunk)), 1), "250")
			c.write("BDAT 0\r\nQUIT\r\n")
			c.reads("502 5.5.1")
			c.reads("221")
			c.ends()
		}
	}
	r.sent(90)
	for _, chunk := range []string{"BDAT -1 LAST\r\n", "BDAT x\r\n", "BDAT\r\n", "BDAT 99999999999999999999 LAST\r\n"} {
		c := r.signedIn() // how much is no command is not known
		c.write(chunk + "NOOP\r\n")
		c.reads("421 4.7.0")
		c.ends()
	}
	servertest.Eventually(t, "the connections have ended", func() bool { return r.Connections() == 0 })
	r.eventuallyCharged(bob, 0)
	if log := r.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the log says\n%s", log)
	}
}

// Each text is judged by its own octets, also if several come in one packet.
func TestText_OddEndOfTheNextInOnePacket_OnlyThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"\n.\r\nx\r\n", "\r\n.\rx\r\n", "\r\n.\nx\r\n", "\n.\rx\r\n", "x\ry\r\n", "x\x00y\r\n"} {
		t.Run(fmt.Sprintf("%q", odd), func(t *testing.T) {
			t.Parallel()
			r := start(t, setup{})
			c := r.signedIn()
			begin := func(to string) string { return "MAIL FROM:<no-reply@acme.example>\r\nRCPT TO:<" + to + ">\r\nDATA\r\n" }
			c.write(begin(alice) + letter + ".\r\n" + begin(bob) + letter + odd + ".\r\n" + begin("carol@example.com") + letter + ".\r\n")
			for _, end := range []string{"250 2.0.0 accepted", "554 5.6.0", "250 2.0.0 accepted"} {
				for _, want := range []string{"250", "250", "354", end} {
					c.reads(want)
				}
			}
			r.sent(2)
			r.charged(bob, 0)
		})
	}
}

// Clients of one host that come at once all sign in, or are told that there are too many.
func TestConnections_ManyAtOnce_SignInOrTold(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	var signedIn, told atomic.Int64
	var group sync.WaitGroup
	for range 60 {
		group.Go(func() {
			socket := must.Get(net.Dial("tcp", r.addr))(t)
			defer socket.Close()
			must.OK(t, socket.SetDeadline(time.Now().Add(time.Minute)))
			in := bufio.NewReader(socket)
			for _, line := range []string{"", "EHLO client.example\r\n", "AUTH PLAIN " + plain("app", appSecret) + "\r\n"} {
				_, _ = socket.Write([]byte(line)) // which fails where the connection is closed: the reply says why
				said := ""
				for len(said) < 4 || said[3] != ' ' {
					var err error
					if said, err = in.ReadString('\n'); err != nil {
						t.Errorf("after %q: %v", line, err)
						return
					}
				}
				switch {
				case strings.HasPrefix(said, "421 4.3.2"):
					told.Add(1)
					return
				case strings.HasPrefix(said, "235"):
					signedIn.Add(1)
				case said[0] != '2':
					t.Errorf("after %q: %s", line, said)
				}
			}
		})
	}
	group.Wait()
	if s, n := signedIn.Load(), told.Load(); s+n != 60 || s < 10 {
		t.Errorf("%d signed in, %d were told", s, n)
	}
}

// A flood from many addresses, each with one connection, does not close the oldest first: those that sign in are as
// likely to stay as any other.
func TestConnections_FloodFromManyAddresses_OldestMayStay(t *testing.T) {
	t.Parallel()
	stays := 0
	for i := range 40 {
		r := start(t, setup{options: func(o *submission.Options) { o.MaxConnections = 40 }})
		first := r.from(t, "127.0.1.1")
		for n := range 20 {
			r.from(t, fmt.Sprintf("127.0.2.%d", n+1))
		}
		if _, err := first.Write([]byte("NOOP\r\n")); err == nil {
			if line, err := first.in.ReadString('\n'); err == nil && strings.HasPrefix(line, "250") {
				stays++
			} else if err == nil && !strings.HasPrefix(line, "421 4.3.2") {
				t.Errorf("%d: it is told %q", i, line)
			}
		}
		first.Close()
	}
	if stays < 20 {
		t.Errorf("the first one stays %d times of 40", stays)
	}
}

// A client that begins anew under TLS is not in the share of the key that it had before.
func TestConnections_SignedInBeforeSTARTTLS_KeyHasItsShare(t *testing.T) {
	t.Parallel()
	r := start(t, setup{options: func(o *submission.Options) { o.MaxConnections = 4 }})
	for range 2 {
		r.signedIn().secure()
	}
	c := r.signedIn()
	r.signedIn().says("NOOP", "250")
	c.says("NOOP", "250")
}

// from connects from an address of this machine, and reads the greeting.
func (r *rig) from(t *testing.T, address string) *client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 0))}
	socket := must.Get(dialer.Dial("tcp", r.addr))(t)
	t.Cleanup(func() { socket.Close() })
	must.OK(t, socket.SetDeadline(time.Now().Add(time.Minute)))
	c := &client{Conn: socket, t: t, in: bufio.NewReader(socket), rig: r}
	c.reads("220")
	return c
}

// A malformed AUTH is a wrong key.
func TestAUTH_Malformed_501AndCounted(t *testing.T) {
	t.Parallel()
	store := must.Get(cache.Open(cache.Options{Now: func() int64 { return 0 }}))(t)
	t.Cleanup(func() { store.Close() })
	guesses := local.New(store.Table("wrong-keys"), must.Get(throttle.NewTokenBucket(throttle.Tier{Name: "per-second", Limit: 1, Window: time.Second}, 4))(t))
	r := start(t, setup{options: func(o *submission.Options) { o.WrongKeys = guesses }})
	c := r.dial()
	c.says("EHLO client.example", "250")
	c.says("AUTH PLAIN %%%", "501 5.5.2")
	c.says("AUTH PLAIN "+base("app"), "501 5.5.2")
	c.says("AUTH LOGIN", "334")
	c.says(base("app"), "334")
	c.says("%%%", "501 5.5.2")
	c.reads("421 4.7.0")
	c.ends()
	if fourth := must.Get(guesses.Take(t.Context(), network.KeyOf(netip.MustParseAddr("127.0.0.1"))))(t); !fourth.Allowed || fourth.Remaining() != 0 { // of four
		t.Errorf("three are not counted as three: the next is %+v", fourth)
	}
}

// A shutdown says so.
func TestShutdown_Idle_421SaysSo(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	idle, inText := r.signedIn(), r.signedIn()
	inText.to(alice)
	inText.says("DATA", "354")
	inText.write(letter)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must.OK(t, r.Shutdown(ctx))
	idle.reads("421 4.3.2")
	inText.reads("421 4.3.2")
	r.charged(alice, 0)
}

// A client that sends the start of its text with DATA, or of a chunk with BDAT, reads what was answered before
// it sends the rest.
func TestReplies_NextIsIncomplete_AreSent(t *testing.T) {
	t.Parallel()
	r := start(t, setup{hurry: func(t *submission.Times) { t.Arrival = time.Hour }})
	c := r.signedIn()
	c.write("NOOP\r\nBDAT 10\r\n0\r\n")
	c.reads("250")
	c.write("3456789")
	c.reads("502")
	c.write("MAIL FROM:<no-reply@acme.example>\r\nRCPT TO:<" + alice + ">\r\nRCPT TO:<nobody>\r\nDATA\r\n" + letter)
	for _, want := range []string{"250", "250", "5", "354"} {
		c.reads(want)
	}
	c.write(".\r\nQUIT\r\n")
	c.reads("250")
	c.reads("221")
	c.ends()
	r.sent(1)
}

// The time for a reply does not end the handshake that follows it.
func TestSTARTTLS_LaterThanAWrite_Served(t *testing.T) {
	t.Parallel()
	r := start(t, setup{hurry: func(t *submission.Times) { t.Write = 300 * time.Millisecond }})
	c := r.dial()
	c.says("EHLO client.example", "250")
	c.says("STARTTLS", "220 2.0.0")
	time.Sleep(400 * time.Millisecond)
	encrypted := tls.Client(c.Conn, r.roots)
	if err := encrypted.Handshake(); err != nil {
		t.Fatal(err)
	}
	c.Conn, c.in = encrypted, bufio.NewReader(encrypted)
	c.says("EHLO client.example", "250")
}

// A client that reads nothing is waited for once, not again for the reply that ends the connection.
func TestClient_NeverReads_WaitedForOnce(t *testing.T) {
	t.Parallel()
	const write = 4 * time.Second
	r := start(t, setup{hurry: func(t *submission.Times) { t.Write = write }})
	c := r.signedIn()
	began := time.Now() // the last octet was taken
	for range 1 << 20 {
		must.OK(t, c.SetWriteDeadline(time.Now().Add(write/2)))
		n, err := c.Write([]byte(strings.Repeat("NOOP\r\n", 600)))
		if err != nil && n == 0 { // it is waited for
			break
		}
		if n > 0 {
			began = time.Now()
		}
	}
	servertest.Eventually(t, "the connection has ended", func() bool { return r.Connections() == 0 })
	if took := time.Since(began); took > write*5/4 {
		t.Errorf("it took %v", took)
	}
}
