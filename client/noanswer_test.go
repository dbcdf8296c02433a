package client_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
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
	url := nobody(t)
	for _, name := range callNames() {
		c, p := asking(t, url, client.Options{})
		err := calls[name](t.Context(), c)
		if kindOf(err) != "not asked" || len(p.all) != 3 || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %d pauses: %v", name, len(p.all), err)
		}
	}
}

// An answer that breaks off is none: the yes may be missing its end.
func TestAnAnswerBreaksOff(t *testing.T) {
	var asked atomic.Int32
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Length", fmt.Sprint(len(sentBody)))
			io.WriteString(w, sentBody[:len(sentBody)-5])
			return
		}
		io.WriteString(w, sentBody)
	}))
	c, _ := asking(t, url, client.Options{})
	if err := calls["send"](t.Context(), c); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// Answers without an end are not read to it.
func TestAnAnswerWithoutEnd(t *testing.T) {
	for _, status := range []int{200, 422, 503} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 4096)); err != nil {
					return
				}
			}
		}))
		c, _ := asking(t, url, client.Options{})
		if err := calls["send"](t.Context(), c); kindOf(err) != "unreadable" {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// Nor is a header.
func TestAHeaderWithoutEnd(t *testing.T) {
	url := raw(t, func(string) string { return "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 1<<20) + "\r\n\r\n" })
	c, _ := asking(t, url, client.Options{Attempts: 1})
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
