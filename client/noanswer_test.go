package client_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/servertest"
)

func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// nobody is the address of a port that nobody listens on.
func nobody(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String()
}

// Where nobody listens nothing was done, so even what counts is asked again.
func TestNobodyListens(t *testing.T) {
	nowhere := nobody(t)
	for _, name := range callNames() {
		c, p := asking(t, nowhere, client.Options{})
		err := calls[name](t.Context(), c)
		if kindOf(err) != "not asked" || len(p.all) != 3 || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %d pauses: %v", name, len(p.all), err)
		}
		if quoting, ok := errors.AsType[*url.Error](err); ok {
			t.Errorf("%s: what was asked is in the chain of errors: %v", name, quoting)
		}
	}
}

// What happened is said in words of ours.
func TestNoAnswerSays(t *testing.T) {
	for cause, want := range map[error]string{
		context.Canceled:         "mailgate gave no answer: the caller gave up",
		context.DeadlineExceeded: "mailgate gave no answer: it took too long",
		io.EOF:                   "mailgate gave no answer: the connection was closed",
		io.ErrUnexpectedEOF:      "mailgate gave no answer: the connection was closed",
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}:      "mailgate gave no answer: connection reset by peer",
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}: "mailgate cannot be reached: connection refused",
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: email}}:     "mailgate cannot be reached: its name cannot be looked up",
		&tls.CertificateVerificationError{Err: errors.New(email)}:                          "mailgate gave no answer: its certificate is not trusted",
		errors.New(email): "mailgate gave no answer: the connection failed",
	} {
		c, _ := asking(t, "http://mailgate.invalid", client.Options{Attempts: 1, Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, cause })})
		_, err := c.Peek(t.Context(), "reply", email)
		if err == nil || err.Error() != "looking at an action: "+want || !errors.Is(err, cause) {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// Where the caller has given up that is the cause, whatever the network says of it.
func TestNoAnswerToACallerWhoGaveUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := asking(t, "http://mailgate.invalid", client.Options{Attempts: 1, Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		cancel()
		return nil, io.EOF
	})})
	if err := calls["send"](ctx, c); kindOf(err) != "no answer" || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// One connection serves one call after the other, until it is not needed any more.
func TestConnectionsAreKept(t *testing.T) {
	var conns, closed atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // a transport keeps no connection that has not taken its whole request
		io.WriteString(w, sentBody)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			conns.Add(1)
		case http.StateClosed:
			closed.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c, _ := asking(t, server.URL, client.Options{})
	for range 5 {
		if err := calls["send"](t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n > 2 { // one may be lost to a machine that stands still after a request is written
		t.Errorf("5 calls made %d connections", n)
	}
	c.CloseIdleConnections()
	servertest.Eventually(t, "none is kept", func() bool { return closed.Load() == conns.Load() })
}

// An answer that breaks off is none: the yes may be missing its end.
func TestAnAnswerBreaksOff(t *testing.T) {
	var asked atomic.Int32
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Length", fmt.Sprint(len(sentBody)))
			io.WriteString(w, sentBody[:len(sentBody)-5])
			return
		}
		io.WriteString(w, sentBody)
	}))
	c, _ := asking(t, server, client.Options{})
	if err := calls["send"](t.Context(), c); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// Answers without an end are not read to it.
func TestAnAnswerWithoutEnd(t *testing.T) {
	for _, status := range []int{200, 422, 503} {
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 4096)); err != nil {
					return
				}
			}
		}))
		c, _ := asking(t, server, client.Options{})
		err := calls["send"](t.Context(), c)
		if _, open := errors.AsType[*client.Unsettled](err); !open || kindOf(err) != "unreadable" {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// Nor is a header.
func TestAHeaderWithoutEnd(t *testing.T) {
	server := raw(t, func(string) string { return "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 1<<20) + "\r\n\r\n" })
	c, _ := asking(t, server, client.Options{Attempts: 1})
	if err := calls["send"](t.Context(), c); kindOf(err) != "no answer" {
		t.Error(err)
	}
}

// raw answers every request with bytes, given the head of the request.
func raw(t testing.TB, answer func(head string) string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed at the end of the test
			}
			go answerRaw(conn, answer)
		}
	}()
	return "http://" + listener.Addr().String()
}

func answerRaw(conn net.Conn, answer func(string) string) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(conn)
	var head strings.Builder
	for {
		text, err := in.ReadString('\n')
		if head.WriteString(text); err != nil || text == "\r\n" {
			break
		}
	}
	io.WriteString(conn, answer(head.String()))
}
