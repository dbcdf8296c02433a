package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
	"github.com/redis/go-redis/v9"
)

func proxied(t *testing.T) (*Server, *FaultyProxy) {
	t.Helper()
	server := Alone(t)
	return server, Proxy(t, server.Addr)
}

// holds expects a value to be in the server, or to get there.
func holds(t *testing.T, server *Server, key, want string) {
	t.Helper()
	servertest.Await(t, key+" to be "+want, 5*time.Second, func() error {
		got, err := server.Client().Get(t.Context(), key).Result()
		if errors.Is(err, redis.Nil) {
			got, err = "", nil
		}
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func TestProxyPassesAndCounts(t *testing.T) {
	_, proxy := proxied(t)
	w := dial(t, proxy.Addr)
	w.send("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\nx\r\ny\r\n") // the value holds a line end
	w.hears("+OK")
	w.send("get a\r\nGET none\r\n")
	w.hears("$4", "x", "y", "$-1")
	if got := proxy.Counts().Connections; got != 1 {
		t.Errorf("counted %d connections, want 1", got)
	}
	if set, get := proxy.Commands("set"), proxy.Commands("GET"); set != 1 || get != 2 {
		t.Errorf("counted %d SET and %d GET, want 1 and 2", set, get)
	}
}

// The lost reply's command was carried out once, and everything around it is as
// if nothing had happened.
func TestCutRepliesLosesExactlyThose(t *testing.T) {
	server, proxy := proxied(t)
	w := dial(t, proxy.Addr)
	w.send("INCR n\r\n")
	w.hears(":1")
	proxy.CutReplies(2)
	w.send("INCR n\r\n")
	w.hearsReset()
	holds(t, server, "n", "2")

	second := dial(t, proxy.Addr)
	second.send("INCR n\r\n")
	second.hearsReset()
	holds(t, server, "n", "3")

	third := dial(t, proxy.Addr)
	third.send("INCR n\r\n")
	third.hears(":4")
	if got := proxy.Counts().Lost; got != 2 {
		t.Errorf("counted %d lost, want 2", got)
	}
}

// In a pipeline, what stands before the loss arrives, and what stands after has
// been carried out by the time the reset comes.
func TestCutRepliesInsideAPipeline(t *testing.T) {
	server, proxy := proxied(t)
	w := dial(t, proxy.Addr)
	w.send("PING\r\n")
	w.hears("+PONG")
	proxy.CutReplies(1, "incr")
	w.send("SET a 1\r\nINCR a\r\nSET b 2\r\nWAIT 1 100\r\nSET c 3\r\n")
	w.hears("+OK")
	w.hearsReset()
	ctx := deadline(t, 5*time.Second)
	if got := server.Client().MGet(ctx, "a", "b", "c").Val(); fmt.Sprint(got) != "[2 2 3]" {
		t.Errorf("at the reset the server holds %v, want all of the pipeline carried out", got)
	}
	if got := proxy.Counts().Lost; got != 1 {
		t.Errorf("counted %d lost, want 1", got)
	}
}

// A reply is lost whole, however it and its command are cut into packets. The
// scripted server sends byte by byte.
func TestCutRepliesWhateverTheChunks(t *testing.T) {
	for _, test := range []struct{ name, first, lost string }{
		{"simple", "+OK\r\n", "+OK\r\n"},
		{"bulk with line ends in it", "$6\r\n\r\n+a\r\n\r\n", "$4\r\n:1\r\n\r\n"},
		{"nested", "*2\r\n*2\r\n:1\r\n$-1\r\n$2\r\nok\r\n", "*1\r\n*-1\r\n"},
		{"error", "-ERR no\r\n", "-ERR no\r\n"},
		{"map, set, double, null, big, verbatim, boolean",
			"%1\r\n+a\r\n~3\r\n,1.5\r\n_\r\n(123\r\n", "*2\r\n=7\r\ntxt:abc\r\n#t\r\n"},
		{"attribute before its value", "|1\r\n+ttl\r\n:9\r\n+v\r\n", "|1\r\n+ttl\r\n:9\r\n+w\r\n"},
		{"push before its reply", ">2\r\n+message\r\n+x\r\n+OK\r\n", "+OK\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy := Proxy(t, scripted(t, test.first, test.lost))
			w := dial(t, proxy.Addr)
			sendSlowly(w.c, "*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n")
			got := make([]byte, len(test.first))
			_ = w.c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.ReadFull(w.in, got); err != nil || string(got) != test.first {
				t.Fatalf("heard %q, %v; want %q", got, err, test.first)
			}
			proxy.CutReplies(1)
			sendSlowly(w.c, "*1\r\n$4\r\nPING\r\n")
			w.hearsReset()
		})
	}
}

// scripted listens and answers each command of a connection with the next of
// the replies, one byte a packet.
func scripted(t *testing.T, replies ...string) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		for _, reply := range replies {
			if _, _, err := readCommand(in); err != nil {
				return
			}
			sendSlowly(conn, reply)
		}
		_, _ = in.ReadByte() // until the other side ends it
	}()
	return listener.Addr().String()
}

// sendSlowly makes a packet of every byte: Go turns Nagle's algorithm off.
func sendSlowly(conn net.Conn, text string) {
	for i := range len(text) {
		if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
			return
		}
	}
}

func TestDropRepliesKeepsTheConnectionSilent(t *testing.T) {
	server, proxy := proxied(t)
	w := dial(t, proxy.Addr)
	w.send("INCR n\r\n")
	w.hears(":1")
	proxy.DropReplies(1)
	w.send("INCR n\r\nINCR n\r\n")
	holds(t, server, "n", "3")
	w.hearsNothing(50 * time.Millisecond)
	w.send("INCR n\r\n") // still carried out, still unheard
	holds(t, server, "n", "4")
	w.hearsNothing(50 * time.Millisecond)

	other := dial(t, proxy.Addr)
	other.send("INCR n\r\n")
	other.hears(":5")
	if got := proxy.Counts().Lost; got != 1 {
		t.Errorf("counted %d lost, want 1", got)
	}
}

func TestSwallowIsSilenceBothWays(t *testing.T) {
	server, proxy := proxied(t)
	used, idle := dial(t, proxy.Addr), dial(t, proxy.Addr)
	for _, w := range []*wire{used, idle} {
		w.send("PING\r\n")
		w.hears("+PONG")
	}
	// A reply on its way when the silence begins is lost as well.
	waiting := dial(t, proxy.Addr)
	waiting.send("BLPOP list 0\r\n")
	servertest.Await(t, "the command to wait in the server", 5*time.Second, func() error {
		if n := server.Client().InfoMap(t.Context(), "clients").Item("Clients", "blocked_clients"); n != "1" {
			return fmt.Errorf("%q clients are blocked", n)
		}
		return nil
	})
	proxy.Swallow()
	server.Client().RPush(t.Context(), "list", "x")
	fresh := dial(t, proxy.Addr)
	for _, w := range []*wire{used, fresh} {
		w.send("INCR n\r\n")
		w.hearsNothing(30 * time.Millisecond)
	}
	waiting.hearsNothing(30 * time.Millisecond)
	servertest.Await(t, "all three to be swallowed", 5*time.Second, func() error {
		if n := swallowed(proxy); n != 3 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	proxy.Pass()
	idle.send("INCR n\r\n")
	idle.hears(":1")
	for _, w := range []*wire{used, fresh, waiting} { // a stream does not mend
		w.send("INCR n\r\n")
		w.hearsNothing(30 * time.Millisecond)
	}
	holds(t, server, "n", "1")
}

// swallowed is how many connections have lost something to a silence.
func swallowed(proxy *FaultyProxy) (n int) {
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	for l := range proxy.links {
		if l.deaf {
			n++
		}
	}
	return n
}

// Whoever is behind a silent network does not hear that the server died.
func TestSwallowHidesTheServersEnd(t *testing.T) {
	server, proxy := proxied(t)
	w := dial(t, proxy.Addr)
	w.send("PING\r\n")
	w.hears("+PONG")
	proxy.Swallow()
	server.Kill()
	w.hearsNothing(50 * time.Millisecond)
	fresh := dial(t, proxy.Addr)
	fresh.send("PING\r\n")
	fresh.hearsNothing(50 * time.Millisecond)
}

func TestRefuseResetsOldAndNew(t *testing.T) {
	server, proxy := proxied(t)
	old := dial(t, proxy.Addr)
	old.send("PING\r\n")
	old.hears("+PONG")
	proxy.Refuse()
	old.hearsReset()
	// Depending on who is quicker, the reset meets the dial or the first read.
	if conn, err := net.Dial("tcp", proxy.Addr); err == nil {
		(&wire{t, conn, bufio.NewReader(conn)}).hearsReset()
		_ = conn.Close()
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("dialling says %v, want a reset", err)
	}
	proxy.Pass()
	w := dial(t, proxy.Addr)
	w.send("GET n\r\n")
	w.hears("$-1")
	holds(t, server, "n", "")
}

// The command is carried out at once, only its reply is late; and the replies
// of a pipeline are late together, not one after another.
func TestDelayHoldsReplies(t *testing.T) {
	server, proxy := proxied(t)
	w := dial(t, proxy.Addr)
	const held = time.Second
	proxy.Delay(held)
	start := time.Now()
	w.send(strings.Repeat("INCR n\r\n", 20))
	holds(t, server, "n", "20")
	if carriedOut := time.Since(start); carriedOut >= held {
		t.Errorf("the commands were carried out after %v only", carriedOut)
	}
	w.hears(":1")
	if first := time.Since(start); first < held {
		t.Errorf("the first reply took %v, want at least %v", first, held)
	}
	for n := 2; n <= 20; n++ {
		w.hears(fmt.Sprintf(":%d", n))
	}
	if all := time.Since(start); all > 5*held {
		t.Errorf("20 replies took %v: each was held in turn", all)
	}
	proxy.Pass()
	w.send("PING\r\n")
	w.hears("+PONG")
}

// The target may be dead, come back, and die again under open connections.
func TestProxyBeforeADeadTarget(t *testing.T) {
	server, proxy := proxied(t)
	server.Kill()
	w := dial(t, proxy.Addr)
	w.send("PING\r\n")
	w.hearsReset()
	server.Restart()
	again := dial(t, proxy.Addr)
	again.send("PING\r\n")
	again.hears("+PONG")
	server.Kill()
	_ = again.c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := again.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the server's end arrives as %v", err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	_, proxy := proxied(t)
	w := dial(t, proxy.Addr)
	w.send("BLPOP list 0\r\n")
	servertest.Await(t, "the command to be forwarded", 5*time.Second, func() error {
		if proxy.Commands("blpop") == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	proxy.Close()
	proxy.Close() // once more does no harm
	w.hearsReset()
	if _, err := net.Dial("tcp", proxy.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling a closed proxy says %v, want a refusal", err)
	}
}
