package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// wire is a bare connection, for what no HTTP client would send.
type wire struct {
	net.Conn
	t      testing.TB
	reader *bufio.Reader
}

// dial opens a connection and writes to it.
func (r *rig) dial(text string) *wire {
	r.t.Helper()
	c := must.Get(net.Dial("tcp", r.Addr))(r.t)
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	w := &wire{c, r.t, bufio.NewReader(c)}
	w.write(text)
	return w
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

// answer reads one answer.
func (w *wire) answer(method string) reply {
	w.t.Helper()
	response := must.Get(http.ReadResponse(w.reader, &http.Request{Method: method}))(w.t)
	defer response.Body.Close()
	return readReply(w.t, response)
}

// read reads one answer and holds it against openapi.yaml.
func (w *wire) read(method, path string) reply {
	w.t.Helper()
	got := w.answer(method)
	if err := theContract.check(exchange{method, path, nil, got.status, got.header, []byte(got.text)}); err != nil {
		w.t.Errorf("against openapi.yaml: %v: %s", err, got.text)
	}
	return got
}

// ended waits for the server to close the connection after no more than so many bytes.
func (w *wire) ended(most int64) {
	w.t.Helper()
	if n, err := io.Copy(io.Discard, w.reader); err != nil || n > most {
		w.t.Errorf("%d more bytes came, and then the end was %v", n, err)
	}
}

// Requests that are not complete, are too large, or hide another are refused.
func TestWire_Hostile_Refused(t *testing.T) {
	r := newRig(t, setup{read: 2 * time.Second})
	const auth = "Authorization: Bearer " + appKey + "\r\nContent-Type: application/json\r\n"
	const body = `{"email":"smuggled@example.com"}`
	tests := []struct {
		name, sent string
		status     int
		problem    string
	}{
		{"chunks in HTTP/1.0", "POST /send-code HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n20\r\n" + body + "\r\n0\r\n\r\n", 400, "bad-request"},
		{"a request behind it", "POST /admin/mailboxes/a@example.com/reset HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\nPOST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 32\r\n\r\n" + body, 400, "bad-request"},
		{"a header too large", "POST /send-code HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("x", 9000) + "\r\n\r\n", 431, "header-too-large"},
		{"a stalled body", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 32\r\n\r\n{", 408, "request-timeout"},
		{"a stalled header", "POST /send-code HTTP/1.1\r\nHost: x\r\nX-Slow: ", 408, "request-timeout"},
		{"one byte", "P", 408, "request-timeout"},
		{"stalled chunks", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n20\r\n{", 408, "request-timeout"},
		{"a stalled length of a chunk", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n20\r", 408, "request-timeout"},
		{"not HTTP that speaks of a timeout", "timeout\r\n\r\n", 400, "bad-request"},
		{"a length that is a timeout", "POST /send-code HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: timeout\r\n\r\n" + body, 400, "bad-request"},
	}
	var sent []*wire
	for _, tt := range tests {
		sent = append(sent, r.dial(tt.sent))
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sent[i].read("POST", "/send-code").is(t, tt.status, tt.problem)
			sent[i].ended(0)
		})
	}
	r.sent(0)
	r.charged("smuggled@example.com", 0)
}

// A Content-Encoding is refused by being there, with whatever it says.
func TestWire_ContentEncoding_Refused(t *testing.T) {
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

// A body that is too large is refused with an answer that the caller can read.
func TestWire_LargeBody_Refused(t *testing.T) {
	r := newRig(t, setup{})
	const chunk = 0x5000
	for length, size := range map[string]int{
		"Content-Length: 16385\r\n\r\n": 16<<10 + 1, "Content-Length: 1048576\r\n\r\n": 1 << 20,
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", chunk): chunk,
	} {
		w := r.dial(posted + length)
		go w.Conn.Write(make([]byte, size))
		w.read("POST", "/send-code").is(t, 413, "body-too-large")
	}
	const fits = `{"email":"large@example.com"`
	r.do("POST", "/send-code", appKey, fits+strings.Repeat(" ", 16<<10-len(fits)-1)+"}").is(t, 200, "")
}

// Expect: 100-continue is answered before the body, also with 413.
func TestWire_Expect_AnsweredFirst(t *testing.T) {
	r := newRig(t, setup{})
	head := "POST /send-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + appKey +
		"\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: "
	w := r.dial(head + strconv.Itoa(16<<10+1) + "\r\n\r\n")
	w.read("POST", "/send-code").is(t, 413, "body-too-large")

	const body = `{"email":"expect@example.com"}`
	w = r.dial(head + strconv.Itoa(len(body)) + "\r\n\r\n")
	if line := must.Get(w.reader.ReadString('\n'))(t); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("answered %q", line)
	}
	must.Get(w.reader.ReadString('\n'))(t)
	w.write(body)
	w.read("POST", "/send-code").is(t, 200, "")
}

// An unknown method or path is no warning.
func TestLog_UnknownRequests_AreInfo(t *testing.T) {
	r := newRig(t, setup{})
	for method, path := range map[string]string{"BREW": "/send-code", "PUT": "/send-code", "GET": "/nothing"} {
		r.request(method, path, nil, "").logged(t, fields{"level": "INFO"})
	}
}

// A request that came with the one before and does not arrive whole is refused in time.
func TestWire_PipelinedAndStalled_TimesOut(t *testing.T) {
	r := newRig(t, setup{read: 2 * time.Second})
	w := r.dial("GET /livez HTTP/1.1\r\nHost: x\r\n\r\nPOST /send-code HTTP/1.1\r\nHost: x\r\nContent-Length: 32\r\n\r\n{")
	w.read("GET", "/livez").is(t, 200, "")
	w.read("POST", "/send-code").is(t, 408, "request-timeout")
	w.ended(0)
}

// Silent connections hold their room for ReadTimeout at most: then the next is served. It may time out
// itself on a slow machine, so it is tried again.
func TestConnections_Silent_MakeRoom(t *testing.T) {
	r := newRig(t, setup{read: 200 * time.Millisecond, options: func(o *apitest.Options) { o.MaxConnections = 3 }})
	for _, begin := range []string{"", "G", "POST /send-code HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"} {
		r.dial(begin)
	}
	servertest.Eventually(t, "the next is served", func() bool {
		next := r.dial(livez)
		defer next.Close()
		response, err := http.ReadResponse(next.reader, nil)
		return err == nil && response.StatusCode == 200
	})
}

// A connection on which nothing was sent is no request in the log.
func TestConnections_Silent_AreNoRequests(t *testing.T) {
	t.Parallel()
	const half = "GET /livez HT"
	for name, tt := range map[string]struct {
		said string
		stay bool // until its time is up, instead of hanging up
		want int  // requests, beside that of the next connection
	}{
		"silent, then closed":                      {"", false, 0},
		"silent until its time is up":              {"", true, 0},
		"half a request, then closed":              {half, false, 1},
		"half a request, and its time is up":       {half, true, 1},
		"garbage":                                  {"\x16\x03\x01\r\n\r\n", true, 1},
		"a request, then silent":                   {livez, true, 1},
		"a request and a half, and its time is up": {livez + half, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			log := newRecord()
			r := newRig(t, setup{read: 2 * time.Second, idle: 2 * time.Second, options: func(o *apitest.Options) { o.Log = log.logger() }})
			w := r.dial(tt.said)
			if strings.HasPrefix(tt.said, livez) {
				w.read("GET", "/livez").is(t, 200, "")
			}
			if !tt.stay {
				w.Conn.(*net.TCPConn).CloseWrite()
			}
			most := int64(1 << 10)
			if tt.said == "" {
				most = 0 // an answer would be one without a request, and without an id
			}
			w.ended(most)
			r.do("GET", "/livez", "", "").is(t, 200, "")
			r.shutdown()
			if logged := strings.Count(log.text(), `"msg":"request"`) - 1; logged != tt.want {
				t.Errorf("%d requests are logged, want %d:\n%s", logged, tt.want, log.text())
			}
		})
	}
}
