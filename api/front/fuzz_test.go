package front

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

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
		ReadBufferSize: headerSize, MaxRequestBodySize: BodyLimit, DisablePreParseMultipartForm: true, NoDefaultServerHeader: true,
		Logger: log.New(io.Discard, "", 0), HeaderReceived: new(Endpoint).boundBody,
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
