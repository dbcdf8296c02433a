package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/valyala/fasthttp"
)

// A body that is accepted is read by encoding/json in the same way.
func FuzzReadObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":"b"}`, `{"a":"\u00e9\ud83d\ude00","d":{"x":"y","":""}}`, ` {"b" : "\"\\\/\b\f\n\r\t" } `,
		`{"a":"1","a":"2"}`, `{"A":"1"}`, `{"a":1}`, `{"a":"\ud800"}`, `{"d":{}}`, `{"d":{"k":"v","k":"w"}}`, "{\"a\":\"\xff\"}",
		"", " ", "null", ` null `, `{"a":null}`, `{"d":null}`, `{}{}`, `{"a":"b"`,
	} {
		f.Add([]byte(seed))
	}
	type object struct {
		A *string           `json:"a"`
		B *string           `json:"b"`
		D map[string]string `json:"d"`
	}
	reading := strict(address.Identity{})
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, want object
		untouched := bytes.Clone(body)
		err := readObject(body, &got, reading)
		if !bytes.Equal(body, untouched) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if p := problemOf(err); p.kind != badRequest || !utf8.ValidString(p.detail) {
				t.Fatalf("refused as %v", p)
			}
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		if _, err := decoder.Token(); err != io.EOF {
			t.Fatalf("there is more after the object: %v", err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read %v, encoding/json %v", got, want)
		}
		if got.A != nil && (!utf8.ValidString(*got.A) || strings.ContainsRune(*got.A, 0)) {
			t.Fatalf("%q passed", *got.A)
		}
	})
}

// A Host that counts as this machine's is no other name to any reader of URLs, and an origin that
// counts as its own is exactly that host.
func FuzzLoopbackHost(f *testing.F) {
	for _, seed := range []string{"localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]", "[::1]:1", "localhost.", "127.1", "localhost@evil.example", "localhost:80@evil", "[::1%25eth0]", "0x7f.1"} {
		f.Add(seed, "http://"+seed)
	}
	f.Fuzz(func(t *testing.T, host, origin string) {
		if !isLoopbackHost(host) {
			return
		}
		read, err := url.Parse("http://" + host + "/")
		if err != nil || read.Host != host || read.User != nil {
			t.Fatalf("%q is read as %v, %v", host, read, err)
		}
		at, err := netip.ParseAddr(read.Hostname())
		if !strings.EqualFold(read.Hostname(), "localhost") && (err != nil || !at.IsLoopback()) {
			t.Fatalf("%q is another machine's: %s", host, read.Hostname())
		}
		if isOriginOf(origin, host) {
			if from, err := url.Parse(origin); err != nil || !strings.EqualFold(from.Host, host) || from.Path != "" {
				t.Fatalf("%q is taken for a page of %q", origin, host)
			}
		}
	})
}

// What counts as JSON counts as JSON in every browser, which asks before it sends that to another
// site.
func FuzzContentType(f *testing.F) {
	for _, seed := range []string{"application/json", "Application/JSON; charset=UTF-8", `application/json;charset="utf-8"`, "application/json; charset=latin1", "text/plain;application/json", "application/json;", "application/json, text/plain", "application/json;charset=utf-8;x=y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if !isJSON([]byte(header)) {
			return
		}
		kind, parameters, err := mime.ParseMediaType(header)
		charset, has := parameters["charset"]
		if err != nil || kind != jsonType || has && !strings.EqualFold(charset, "utf-8") || len(parameters) > 1 {
			t.Fatalf("%q is %q %v, %v", header, kind, parameters, err)
		}
	})
}

// Whatever a client writes into X-Forwarded-For, it is taken for the address that the
// trusted proxy saw it at, also if that proxy is behind another.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "10.0.0.9", "10.0.0.9, 10.0.0.8", ",", "\n", "10.0.0.9\n10.0.0.8\n", "unknown", "::ffff:10.0.0.9", "1.1.1.1,,"} {
		f.Add(seed, uint32(0xcb007107), true)
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, wrote string, from uint32, twice bool) {
		client := netip.AddrFrom4([4]byte{byte(from >> 24), byte(from >> 16), byte(from >> 8), byte(from)})
		if within(client, trusted) {
			return
		}
		lines := strings.Split(wrote, "\n")
		ownLine := append(append([]string(nil), lines...), client.String())
		lines[len(lines)-1] += ", " + client.String()
		for _, forwarded := range [][]string{lines, ownLine} {
			if twice {
				forwarded[len(forwarded)-1] += ", 10.0.0.2"
			}
			proxy := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4711}
			if got := clientAddress(proxy, forwarded, trusted); got != client {
				t.Fatalf("%q was taken for %s, and is %s", forwarded, got, client)
			}
			stranger := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}
			if got := clientAddress(stranger, forwarded, trusted); got.String() != "192.0.2.1" {
				t.Fatalf("%q of a stranger was believed: %s", forwarded, got)
			}
		}
	})
}

// reading is what a server makes of one request.
type reading struct {
	method, uri, host, body string
	forwarded               string // all lines of X-Forwarded-For
	last                    bool   // the connection ends with it
}

// Requests that pass are read by another server in the same way, one after the other on a
// connection: no request can hide in the end of another.
func FuzzFraming(f *testing.F) {
	const post = "POST /send-code HTTP/1.1\r\nHost: x\r\n"
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
		post + "Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: u\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		post + "X-Forwarded-For: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Forwarded-For: b\r\n\r\n",
		post + "X-Forwarded-For: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
		post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		post + "Content-Length : 5\r\n\r\nhello", post + "Content-Length: +5\r\n\r\nhello", post + "Content-Length: 0x5\r\n\r\nhello",
		post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", post + "Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", post + "Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
		post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff5\r\nhello\r\n0\r\n\r\n", post + "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
		"GET / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\n\nGET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		ours, theirs := readOurs(stream), readTheirs(stream)
		for i, one := range ours {
			if i == len(theirs) && one.last {
				return // nothing comes after it
			}
			one.last = false
			if i >= len(theirs) || one != theirs[i] {
				t.Fatalf("%q\n is read here as  %+v\n and elsewhere as %+v", stream, ours, theirs)
			}
		}
	})
}

// readOurs has the library read a stream with the settings of a Server, up to the first request
// that is refused.
func readOurs(stream []byte) (all []reading) {
	server := &fasthttp.Server{
		ReadBufferSize: headerSize, MaxRequestBodySize: bodyLimit, DisablePreParseMultipartForm: true, NoDefaultServerHeader: true,
		Logger: log.New(io.Discard, "", 0), HeaderReceived: refuseLargeEarly,
		Handler: func(fast *fasthttp.RequestCtx) {
			header := &fast.Request.Header
			if misframed(fast) != "" || !slices.Contains(fiber.DefaultMethods, string(header.Method())) {
				fast.SetConnectionClose()
				return
			}
			forwarded := ""
			for _, line := range header.PeekAll("X-Forwarded-For") {
				forwarded += strings.TrimSpace(string(line)) + "\n"
			}
			all = append(all, reading{string(header.Method()), string(header.RequestURI()), strings.ToLower(string(header.Host())), string(fast.Request.Body()), forwarded, header.ConnectionClose()})
		},
	}
	_ = server.ServeConn(&conn{Conn: &played{in: bytes.NewReader(stream)}}) // it ends with an error where the stream breaks off
	return all
}

// readTheirs has the standard library read it, as far as it gets.
func readTheirs(stream []byte) (all []reading) {
	in := bufio.NewReader(bytes.NewReader(stream))
	for {
		skipEmptyLines(in)
		request, err := http.ReadRequest(in)
		if err != nil {
			return all
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return all
		}
		forwarded := ""
		for _, line := range request.Header["X-Forwarded-For"] {
			forwarded += strings.TrimSpace(line) + "\n"
		}
		all = append(all, reading{request.Method, request.RequestURI, strings.ToLower(request.Host), string(body), forwarded, false})
	}
}

// skipEmptyLines does what the standard library leaves out and RFC 9112, 2.2 asks for.
func skipEmptyLines(in *bufio.Reader) {
	for {
		next, _ := in.Peek(2)
		switch {
		case len(next) > 0 && next[0] == '\n':
			in.Discard(1)
		case string(next) == "\r\n":
			in.Discard(2)
		default:
			return
		}
	}
}

// played is a connection to which a client has written everything already.
type played struct {
	net.Conn
	in *bytes.Reader
}

func (p *played) Read(b []byte) (int, error)      { return p.in.Read(b) }
func (p *played) Write(b []byte) (int, error)     { return len(b), nil }
func (p *played) Close() error                    { return nil }
func (p *played) LocalAddr() net.Addr             { return &net.TCPAddr{} }
func (p *played) RemoteAddr() net.Addr            { return &net.TCPAddr{} }
func (p *played) SetReadDeadline(time.Time) error { return nil }
