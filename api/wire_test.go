package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
)

// A wire is a bare connection, for what no HTTP client would send.
type wire struct {
	net.Conn
	t      testing.TB
	reader *bufio.Reader
}

func (r *rig) dial() *wire {
	r.t.Helper()
	c := must(net.Dial("tcp", r.addr))(r.t)
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return &wire{c, r.t, bufio.NewReader(c)}
}

func (w *wire) write(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		w.t.Fatal(err)
	}
}

// send asks for a code to be mailed, and reads no answer.
func (w *wire) send(email string) {
	w.t.Helper()
	body := `{"email":` + quote(email) + `}`
	w.write("POST /send-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + appKey +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// read reads one answer and holds it against openapi.yaml.
func (w *wire) read(method, path string) reply {
	w.t.Helper()
	response := must(http.ReadResponse(w.reader, &http.Request{Method: method}))(w.t)
	defer response.Body.Close()
	got := readReply(w.t, response)
	if err := theContract.check(exchange{method, path, nil, got.status, got.header, []byte(got.text)}); err != nil {
		w.t.Errorf("against openapi.yaml: %v: %s", err, got.text)
	}
	return got
}

// ended waits for the server to close the connection.
func (w *wire) ended() {
	w.t.Helper()
	if n, err := io.Copy(io.Discard, w.reader); err != nil {
		w.t.Errorf("the connection was not closed in order: %v after %d bytes", err, n)
	}
}

// Requests that are no HTTP, or HTTP of the sly kind.
func TestWireHostile(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) { o.ReadTimeout = 2 * time.Second }})
	const auth = "Authorization: Bearer " + appKey + "\r\nContent-Type: application/json\r\n"
	const body = `{"email":"smuggled@example.com"}`
	tests := []struct {
		name, sent string
		status     int
		problem    string
	}{
		{"not HTTP", "\x16\x03\x01\x00\xa5\x01\r\n\r\n", 400, "bad-request"},
		{"two lengths", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 32\r\nContent-Length: 31\r\n\r\n" + body, 400, "bad-request"},
		{"two equal lengths", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 32\r\ncontent-length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"a length and chunks", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n" + body + "\r\n0\r\n\r\n", 400, "bad-request"},
		{"chunks by another name", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: xchunked\r\n\r\n20\r\n" + body + "\r\n0\r\n\r\n", 400, "bad-request"},
		{"chunks in HTTP/1.0", "POST /send-code HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n20\r\n" + body + "\r\n0\r\n\r\n", 400, "bad-request"},
		{"a body without an end", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: identity\r\n\r\n" + body, 400, "bad-request"},
		{"a request behind it", "POST /admin/mailboxes/a@example.com/reset HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\nPOST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"a folded line", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "X: a\r\n b\r\nContent-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"a NUL", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "X: a\x00\r\nContent-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"a CR alone", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "X: a\rContent-Length: 1\r\nContent-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"no host", "POST /send-code HTTP/1.1\r\n" + auth + "Content-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"two hosts", "POST /send-code HTTP/1.1\r\nHost: x\r\nHost: y\r\n" + auth + "Content-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"two keys", "POST /send-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n" + auth + "Content-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"a version to come", "POST /send-code HTTP/1.9\r\nHost: x\r\nConnection: keep-alive\r\n" + auth + "Content-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"a length that is none", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 3x\r\n\r\n" + body, 400, "bad-request"},
		{"a space before the colon", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length : 32\r\n\r\n" + body, 400, "bad-request"},
		{"a header too large", "POST /send-code HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("x", 9000) + "\r\n\r\n", 431, "header-too-large"},
		{"a stalled body", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 32\r\n\r\n{", 408, "request-timeout"},
		{"a stalled header", "POST /send-code HTTP/1.1\r\nHost: x\r\nX-Slow: ", 408, "request-timeout"},
		{"one byte", "P", 408, "request-timeout"},
		{"stalled chunks", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n20\r\n{", 408, "request-timeout"},
		{"a stalled length of a chunk", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n20\r", 408, "request-timeout"},
		{"not HTTP that speaks of a timeout", "timeout\r\n\r\n", 400, "bad-request"},
		{"a length that is a timeout", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: timeout\r\n\r\n" + body, 400, "bad-request"},
		{"a method nobody knows", "BREW /send-code HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 501, "method-unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := r.dial()
			w.write(tt.sent)
			method, path := "POST", "/send-code"
			if tt.status == 501 {
				method = "BREW"
			}
			w.read(method, path).is(t, tt.status, tt.problem)
			w.ended()
		})
	}
	if len(r.box.List()) != 0 || r.used("smuggled@example.com") != 0 {
		t.Error("one of them was taken for a request")
	}
}

// A Content-Encoding is refused by being there, with whatever it says.
func TestWireEncodings(t *testing.T) {
	r := newRig(t, setup{})
	for _, encodings := range []string{
		"Content-Encoding: gzip\r\n", "Content-Encoding: identity\r\n", "Content-Encoding:\r\n",
		"Content-Encoding:\r\ncontent-encoding: gzip\r\n",
	} {
		const email = "encoded@example.com"
		r.ask("POST", "/send-code", "x", "Authorization: Bearer "+appKey+"\r\n"+encodings, `{"email":"`+email+`"}`).is(t, 400, "bad-request")
		for _, body := range []string{"", "{}"} {
			r.ask("POST", "/admin/mailboxes/"+email+"/reset", "x", "Authorization: Bearer "+opsKey+"\r\n"+encodings, body).is(t, 400, "bad-request")
		}
	}
}

// A body that is too large is refused, and the caller lives to read why.
func TestWireLargeBodies(t *testing.T) {
	r := newRig(t, setup{})
	for _, size := range []int{16<<10 + 1, 64 << 10, 1 << 20} {
		w := r.dial()
		w.write("POST /send-code HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(size) + "\r\n\r\n")
		go io.CopyN(w, zeros{}, int64(size))
		w.read("POST", "/send-code").is(t, 413, "body-too-large")
	}
	w := r.dial()
	w.write("POST /admin/mailboxes/a@example.com/reset HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5000\r\n")
	go io.CopyN(w, zeros{}, 0x5000)
	w.read("POST", "/admin/mailboxes/a@example.com/reset").is(t, 413, "body-too-large")

	fits := `{"email":"large@example.com"` + strings.Repeat(" ", 16<<10-30) + "}"
	for len(fits) < 16<<10 {
		fits = " " + fits
	}
	r.do("POST", "/send-code", appKey, fits).is(t, 200, "")
}

// Who asks first whether a body is wanted is told at once that it is too large, and is
// told to go on otherwise.
func TestWireExpect(t *testing.T) {
	r := newRig(t, setup{})
	head := "POST /send-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + appKey +
		"\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: "
	w := r.dial()
	w.write(head + strconv.Itoa(16<<10+1) + "\r\n\r\n")
	w.read("POST", "/send-code").is(t, 413, "body-too-large")

	const body = `{"email":"expect@example.com"}`
	w = r.dial()
	w.write(head + strconv.Itoa(len(body)) + "\r\n\r\n")
	if line := must(w.reader.ReadString('\n'))(t); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("answered %q", line)
	}
	must(w.reader.ReadString('\n'))(t)
	w.write(body)
	w.read("POST", "/send-code").is(t, 200, "")
}

// What strangers send is everyday in the log, whatever it is.
func TestStrangersAreNoWarning(t *testing.T) {
	r := newRig(t, setup{})
	for method, path := range map[string]string{"BREW": "/send-code", "PUT": "/send-code", "GET": "/nothing"} {
		got := r.request(method, path, nil, "")
		if lines := journal.about(t, got.header.Get("X-Request-Id")); len(lines) != 1 || lines[0]["level"] != "INFO" {
			t.Errorf("%s %s: %d, and the log says %v", method, path, got.status, lines)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Several requests in one packet are answered in order.
func TestWirePipelined(t *testing.T) {
	r := newRig(t, setup{})
	w := r.dial()
	w.write("GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: one\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\nX-Request-Id: two\r\n\r\n")
	if got := w.read("GET", "/livez"); got.body["status"] != "live" || got.header.Get("X-Request-Id") != "one" {
		t.Errorf("first: %s", got.text)
	}
	if got := w.read("GET", "/readyz"); got.body["status"] != "ready" || got.header.Get("X-Request-Id") != "two" {
		t.Errorf("second: %s", got.text)
	}
}

// An answer is not held back for good for a request that came with the one before and does not
// come whole: that is refused.
func TestWirePipelinedAndStalled(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) { o.ReadTimeout = time.Minute }})
	w := r.dial()
	w.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\nPOST /send-code HTTP/1.1\r\nHost: x\r\nContent-Length: 32\r\n\r\n{")
	w.read("GET", "/livez").is(t, 200, "")
	w.read("POST", "/send-code").is(t, 408, "request-timeout")
	w.ended()
}

// Silent connections use up no more places than there are, and make room.
func TestConnectionsAreBounded(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) { o.MaxConnections = 4 }})
	var kept []*wire
	for range 12 {
		w := r.dial()
		w.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		w.read("GET", "/livez")
		kept = append(kept, w)
	}
	open := 0
	for _, w := range kept {
		w.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := w.reader.ReadByte(); err != io.EOF {
			open++
		}
	}
	if open > 4 {
		t.Errorf("%d connections are open, want at most 4", open)
	}
	if open == 0 {
		t.Error("none was kept")
	}
}

// A connection whose request is being answered is not cut for the next: it waits.
func TestConnectionsAtWorkAreKept(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *api.Options) {
		o.MaxConnections = 1
		o.Relay = sender
	}})
	first := r.dial()
	first.send("at-work@example.com")
	<-sender.entered
	second := r.dial()
	second.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	close(sender.leave)
	first.read("POST", "/send-code").is(t, 200, "")
	second.read("GET", "/livez").is(t, 200, "")
}

// Connections without a key keep nobody out who has one, be they silent, slow, or once
// answered and then slow.
func TestConnectionsWithoutAKeyMakeRoom(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) {
		o.MaxConnections = 4
		o.ReadTimeout = time.Minute
	}})
	look := func(w *wire) {
		t.Helper()
		w.write("GET /mailboxes/room@example.com HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + appKey + "\r\n\r\n")
		w.read("GET", "/mailboxes/room@example.com").is(t, 200, "")
	}
	caller := r.dial()
	look(caller)
	for range 3 {
		for _, begin := range []string{"", "G", "POST /send-code HTTP/1.1\r\nContent-Length: 10\r\n\r\n{"} {
			r.dial().write(begin)
		}
		slow := r.dial()
		slow.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		slow.read("GET", "/livez").is(t, 200, "")
		slow.write("GET /livez HT")
	}
	look(r.dial())
	look(caller)
}

// A kept connection that stays silent is closed.
func TestIdleConnectionsAreClosed(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) { o.IdleTimeout = 50 * time.Millisecond }})
	w := r.dial()
	w.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	w.read("GET", "/livez")
	w.ended()
}
