package api_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	livez   = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
	posted  = "POST /send-code HTTP/1.1\r\nHost: x\r\n"
	chunked = posted + "Transfer-Encoding: chunked\r\n\r\n"
	chunks  = "0\r\n\r\n"
)

// A request that a proxy may have read to another end, or for another host, is refused, and what
// follows it on the connection is not answered.
func TestFraming_Ambiguous_RefusedAndClosed(t *testing.T) {
	r := newRig(t, setup{options: behindProxy})
	hidden := "A: b\r\n\r\n" + livez
	for name, text := range map[string]string{
		"a length and chunks":                posted + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
		"chunks and a length":                posted + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunks,
		"two lengths":                        posted + "Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}",
		"two codings":                        posted + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
		"the coding identity":                posted + "Transfer-Encoding: identity\r\n\r\n",
		"an unknown coding":                  posted + "Transfer-Encoding: xchunked\r\n\r\n" + chunks,
		"a line after the chunks":            chunked + "0\r\nT: u\r\n\r\n",
		"an address after the chunks":        chunked + "0\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n",
		"a key for retries after the chunks": chunked + "0\r\nIdempotency-Key: \"k\"\r\n\r\n",
		"a line after the chunks of a GET":   "GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: u\r\n\r\n",
		"a chunk's length in C":              chunked + "0x" + strconv.FormatInt(int64(len(hidden)), 16) + "\r\n" + hidden + "\r\n0\r\n\r\n",
		"an extension with a line":           chunked + "0;a=\n\r\n\r\n",
		"a length that ends in letters":      posted + "Content-Length: 3x\r\n\r\n{}",
		"a name with a blank":                posted + "Content-Length : 40\r\n\r\n",
		"a line without a colon":             posted + "Content-Length\r\n\r\n",
		"a line without a name":              posted + ": 40\r\n\r\n",
		"a folded first line":                "POST /send-code HTTP/1.1\r\n X: a\r\nHost: x\r\n\r\n",
		"a NUL":                              posted + "X: a\x00\r\n\r\n",
		"a CR alone":                         posted + "X: a\rContent-Length: 1\r\n\r\n",
		"no host":                            "GET /livez HTTP/1.1\r\n\r\n",
		"two hosts":                          "GET /livez HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
		"another host's URL":                 "GET http://y/livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"a host before the path":             "GET //y/livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"no path":                            "GET livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"two Authorizations":                 "GET /livez HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
		"no version":                         "GET /livez\r\nHost: x\r\n\r\n",
		"no version after a blank":           "GET /livez \r\nHost: x\r\n\r\n",
		"a LF alone after the first line":    "GET /livez HTTP/1.1\nHost: x\r\n\r\n",
		"a LF alone after another version":   "GET /livez HTTP/2.0\nHost: x\r\n\r\n",
		"a LF alone after a header line":     "GET /livez HTTP/1.1\r\nA: b\nHost: x\r\n\r\n",
		"a LF alone before the body":         posted + "Content-Length: 2\r\n\n{}\r\n\r\n",
		"a folded line":                      "GET /livez HTTP/1.1\r\nHost: x\r\nA: b\r\n c: d\r\n\r\n",
		"a line folded by a tab":             "GET /livez HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n",
		"a blank in a name":                  "GET /livez HTTP/1.1\r\nHost: x\r\nContent Length: 40\r\n\r\n",
		"a user in the URL":                  "GET http://y@x/livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"an empty user in the URL":           "GET http://@x/livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"two types of the body":              posted + "Content-Type: text/plain\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"not HTTP":                           "\x16\x03\x01\x00\xa5\x01\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := r.dial(text + livez)
			w.read("POST", "/send-code").is(t, 400, "bad-request")
			w.ended(0)
		})
	}
}

// What follows a word that is no method may be the rest of another request.
func TestFraming_UnknownMethod_Closed(t *testing.T) {
	r := newRig(t, setup{})
	w := r.dial("ab" + livez + livez)
	w.read("BREW", "/livez").is(t, 501, "method-unknown")
	w.ended(0)
}

// A body in chunks ends where its last chunk does, and the next request follows it. The address
// that the proxy stated before the body is the client's.
func TestFraming_Chunks_NextRequestAnswered(t *testing.T) {
	r := newRig(t, setup{options: behindProxy})
	w := r.dial("POST /send-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + appKey + "\r\nContent-Type: application/json\r\n" +
		"X-Forwarded-For: 203.0.113.9\r\nTransfer-Encoding: chunked\r\n\r\n1e;a=b\r\n" + `{"email":"chunks@example.com"}` + "\r\n" + chunks + livez)
	sent := w.read("POST", "/send-code")
	sent.is(t, 200, "")
	sent.logged(t, fields{"from": "203.0.113.9"})
	w.read("GET", "/livez").is(t, 200, "")
}

// The end of a first line is seen however the request is cut up, and behind another request. The same
// bytes in a body are no line end.
func TestFraming_LFAlone_SeenInPieces(t *testing.T) {
	r := newRig(t, setup{})
	for name, pieces := range map[string][]string{
		"between the CR and the LF":  {"GET /livez HTTP/1.1", "\nHost: x\r\n\r\n"},
		"in the version":             {"GET /livez HTTP/1", ".1\nHost: x\r\n\r\n"},
		"byte by byte":               strings.Split("GET /livez HTTP/1.0\nHost: x\r\n\r\n", ""),
		"behind another request":     {livez + "GET /livez HTTP/1.1\nHost: x\r\n\r\n"},
		"behind, and cut up as well": {livez + "GET /livez HTTP/1.1", "\nHost: x\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := r.dial("")
			for _, piece := range pieces {
				w.write(piece)
				time.Sleep(time.Millisecond) // the pieces may still arrive together, which changes nothing
			}
			if strings.HasPrefix(pieces[0], livez) {
				w.answer("GET")
			} else {
				w.read("GET", "/livez").is(t, 400, "bad-request")
			}
			w.ended(1 << 10)
		})
	}
	body := "{\n\"email\":\"pretty@example.com\"\n}\n"
	w := r.dial("POST /send-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + appKey + "\r\nContent-Type: application/json\r\n" +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body + livez)
	w.read("POST", "/send-code").is(t, 200, "")
	w.read("GET", "/livez").is(t, 200, "")
}
