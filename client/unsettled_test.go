package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
)

// hosting talks to one who connects. Once it has left, or the talk is over, nobody listens any
// more; then the connection breaks.
func hosting(t testing.TB, talk func(conn net.Conn, leave func() error)) (url string) {
	t.Helper()
	listener := need(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return // closed at the end of the test
		}
		defer conn.Close()
		defer listener.Close()
		talk(conn, listener.Close)
	}()
	return "http://" + listener.Addr().String()
}

// readWhole reads a request to its end.
func readWhole(in *bufio.Reader) error {
	request, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, request.Body)
	return err
}

// leaving answers so many requests on a connection that it keeps, reads one more to its end
// and is gone.
func leaving(t testing.TB, answered int) (url string) {
	t.Helper()
	return hosting(t, func(conn net.Conn, _ func() error) {
		for in := bufio.NewReader(conn); readWhole(in) == nil && answered > 0; answered-- {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(sentBody), sentBody)
		}
	})
}

// What one attempt was asked, and may have done, is not unsaid by others that found nobody.
func TestAnEarlierAttemptMayHaveDoneIt(t *testing.T) {
	for _, name := range strings.Fields("send mailbox peek release inspect") {
		c, p := asking(t, leaving(t, 0), client.Options{})
		if err := calls[name](t.Context(), c); kindOf(err) != "no answer" || len(p.all) != 3 {
			t.Errorf("%s: %d pauses: %v", name, len(p.all), err)
		}
	}
}

// parting gives one answer, and is gone before it has given it.
func parting(t testing.TB, last line) (url string) {
	t.Helper()
	return hosting(t, func(conn net.Conn, leave func() error) {
		if readWhole(bufio.NewReader(conn)) != nil || leave() != nil {
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 %d No\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", last.status, len(last.body), last.body)
	})
}

// Part of what mailgate could not complete may be done. What it had no time for certainly was not.
func TestAnEarlierAttemptMayHaveDonePart(t *testing.T) {
	for _, name := range []string{"reset", "reset action", "reset rule", "release"} {
		for kind, want := range map[string]string{"store-unavailable": "no answer", "busy": "not asked"} {
			c, p := asking(t, parting(t, problem(503, kind)), client.Options{})
			if err := calls[name](t.Context(), c); kindOf(err) != want || len(p.all) != 3 {
				t.Errorf("%s, %s: %d pauses: %v", name, kind, len(p.all), err)
			}
		}
	}
}

// Nor within one attempt, where a kept connection breaks and a new one cannot be made.
func TestAKeptConnectionBreaks(t *testing.T) {
	c, _ := asking(t, leaving(t, 1), client.Options{Attempts: 1})
	if err := calls["send"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := calls["send"](t.Context(), c); kindOf(err) != "no answer" {
		t.Error(err)
	}
}

// What a send that may have left ends with says so, and names the key; nothing else does.
func TestUnsettled(t *testing.T) {
	wait := line{status: 429, body: waitBody}
	alone := line{status: 429, body: strings.Replace(waitBody, `"degraded":false`, `"degraded":true`, 1)}
	lost, inFlight, page := line{}, problem(409, "idempotency-in-flight"), foreign(200, nil)
	tests := []struct {
		name  string
		lines []line
		kind  string // of the last attempt
		open  bool
	}{
		{"an answer is lost", []line{lost}, "no answer", true},
		{"the first is still at work", []line{inFlight}, "idempotency-in-flight", true},
		{"a proxy's bad gateway", []line{foreign(502, nil)}, "foreign", true},
		{"a proxy's fault", []line{foreign(500, nil)}, "foreign", true},
		{"a fault", []line{problem(500, "internal")}, "internal", true},
		{"a page", []line{page}, "unreadable", true},

		{"a lost answer, and mailgate cannot decide", []line{lost, problem(503, "store-unavailable")}, "store-unavailable", true},
		{"a lost answer, and no relay", []line{lost, problem(503, "relay-unavailable", "Retry-After", "6")}, "relay-unavailable", true},
		{"a lost answer, and the key is no more", []line{lost, problem(401, "unauthorized")}, "unauthorized", true},
		{"a lost answer, and a limit that not all is known of", []line{lost, alone}, "wait", true},
		{"a bad gateway, and mailgate has too much to do", []line{foreign(502, nil), problem(503, "busy", "Retry-After", "6")}, "busy", true},
		{"at work, and mailgate cannot decide", []line{inFlight, problem(503, "store-unavailable", "Retry-After", "6")}, "store-unavailable", true},

		{"a lost answer, and a limit", []line{lost, wait}, "wait", false},
		{"a lost answer, and a recipient", []line{lost, problem(422, "recipient-rejected")}, "recipient-rejected", false},
		{"a lost answer, and nobody knows", []line{lost, problem(504, "delivery-unknown")}, "delivery-unknown", false},
		{"a limit", []line{alone}, "wait", false},
		{"mailgate cannot decide", []line{problem(503, "store-unavailable")}, "store-unavailable", false},
		{"fields", []line{problem(422, "invalid")}, "invalid", false},
		{"a proxy's no", []line{foreign(404, nil)}, "foreign", false},
	}
	for _, tt := range tests {
		for _, given := range []string{"", "order-4711"} {
			server := play(t, tt.lines...)
			c, _ := asking(t, server.URL, client.Options{})
			_, err := c.SendCode(t.Context(), client.Send{Email: email, Key: given})
			unsettled, open := errors.AsType[*client.Unsettled](err)
			if open != tt.open || kindOf(err) != tt.kind {
				t.Fatalf("%s: unsettled %v, and it was %q: %v", tt.name, open, kindOf(err), err)
			}
			if key := server.questions()[0].header.Get("Idempotency-Key"); open && (`"`+unsettled.Key+`"` != key || strings.Contains(err.Error(), unsettled.Key)) {
				t.Errorf("%s: the key %s was %q: %v", tt.name, key, unsettled.Key, err)
			}
		}
	}
	c, _ := asking(t, nobody(t), client.Options{})
	err := calls["send"](t.Context(), c)
	if unsettled, open := errors.AsType[*client.Unsettled](err); open {
		t.Errorf("nobody listens: %v", unsettled)
	}
	for _, name := range callNames() {
		c, _ := asking(t, play(t, lost, problem(503, "busy")).URL, client.Options{})
		err := calls[name](t.Context(), c)
		if unsettled, open := errors.AsType[*client.Unsettled](err); open != (name == "send") {
			t.Errorf("%s: %v", name, unsettled)
		}
	}
}

// A caller who gives up goes on under the key as well.
func TestUnsettledAndTheCallersTimeIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := asking(t, play(t, line{}, problem(503, "busy")).URL, client.Options{Pause: func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}})
	err := calls["send"](ctx, c)
	if unsettled, open := errors.AsType[*client.Unsettled](err); !open || !errors.Is(err, context.Canceled) || unsettled.Key == "" {
		t.Error(err)
	}
}
