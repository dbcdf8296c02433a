package front

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

const bareLF = "A line of the request ends in LF alone; each must end in CR LF."

// Refuse answers a request that does not reach the routes, with 400, 408, 413, 431 or 501. The detail may
// be empty.
type Refuse func(fast *fasthttp.RequestCtx, status int, detail string)

// check refuses requests that a proxy may have read differently, as one could hide in the end of another. It also refuses
// unknown methods, which may be the rest of a request that was read wrong. fasthttp refuses the others of this kind. Each
// refusal ends the connection.
func (e *Endpoint) check(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fast *fasthttp.RequestCtx) {
		status, detail := fiber.StatusBadRequest, misframed(fast)
		if detail == "" {
			if slices.Contains(fiber.DefaultMethods, string(fast.Method())) {
				next(fast)
				return
			}
			status = fiber.StatusNotImplemented
		}
		fast.SetConnectionClose()
		e.refuse(fast, status, detail)
	}
}

// misframed returns how a proxy in front may have read a request in another way.
func misframed(fast *fasthttp.RequestCtx) string {
	header := &fast.Request.Header
	why := misframedHeader(header.RawHeaders())
	switch {
	case why != "":
		return why
	case fast.Conn().(*conn).bareLF:
		return bareLF
	case len(header.PeekTrailerKeys()) > 0:
		return "The request has header lines after its body."
	case !bytes.EqualFold(fast.URI().Host(), header.Host()):
		return "The URL in the request names another host than the Host header."
	case hasUser(header.RequestURI()):
		return "The URL in the request has a user."
	case len(header.PeekAll("Authorization")) > 1:
		return "The request has more than one Authorization."
	}
	return ""
}

// misframedHeader reads the lines as they came: fasthttp accepts and drops a Content-Length beside
// chunks, the Transfer-Encoding identity and all Content-Types but one, and joins folded lines.
func misframedHeader(header []byte) string {
	lengths, types := 0, 0
	for line := range bytes.Lines(header) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case !bytes.HasSuffix(line, []byte("\r\n")):
			return bareLF
		case line[0] == ' ', line[0] == '\t':
			return "A line of the header continues on the next one."
		case bytes.IndexByte(name, ' ') >= 0:
			return "The name of a header field has a blank."
		case bytes.EqualFold(name, []byte("Content-Length")):
			lengths++
		case bytes.EqualFold(name, []byte("Content-Type")):
			types++
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			lengths++
			if !bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked")) {
				return "The only Transfer-Encoding is chunked."
			}
		}
	}
	switch {
	case lengths > 1:
		return "The request states its length in two ways."
	case types > 1:
		return "The request has more than one Content-Type."
	}
	return ""
}

// hasUser reports whether a URL has a user before its host.
func hasUser(url []byte) bool {
	_, rest, _ := bytes.Cut(url, []byte("://"))
	host, _, _ := bytes.Cut(rest, []byte{'/'})
	return url[0] != '/' && bytes.IndexByte(host, '@') >= 0
}

// boundBody bounds the body of a request. It drops the Expect of one whose body is too large, so that it is
// refused by its length before the body is sent.
func (e *Endpoint) boundBody(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	most := e.bodyLimit(header)
	if length := header.ContentLength(); most > largeBody && (length < 0 || length > largeBody) && !e.large.Allow() {
		most = largeBody
	}
	if header.ContentLength() > most {
		header.Del("Expect")
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: most}
}

func (e *Endpoint) bodyLimit(header *fasthttp.RequestHeader) int {
	path, _, _ := bytes.Cut(header.RequestURI(), []byte{'?'})
	return cmp.Or(e.Bodies[string(path)], BodyLimit)
}

// unread answers a request that is incomplete or not HTTP. It does not show the library's error,
// which may quote the request.
func (e *Endpoint) unread(fast *fasthttp.RequestCtx, err error) {
	from := fast.Conn().(*conn)
	if !from.heard { // nothing arrived, so there is nothing to answer or to log
		_ = from.Close() // fasthttp would write its empty answer
		return
	}
	if from.timedOut {
		e.refuse(fast, fiber.StatusRequestTimeout, "")
		return
	}
	discard(from)
	switch {
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		e.refuse(fast, fiber.StatusRequestHeaderFieldsTooLarge, "")
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		detail := "The body is too large." // of chunks the library keeps no header
		if most := e.bodyLimit(&fast.Request.Header); fast.Request.Header.ContentLength() > most {
			detail = "The body must not exceed " + strconv.Itoa(most) + " bytes."
		}
		e.refuse(fast, fiber.StatusRequestEntityTooLarge, detail)
	default:
		e.refuse(fast, fiber.StatusBadRequest, "The request is not valid HTTP.")
	}
}

// discard reads for a moment what the client is still sending: a connection closed with unread bytes
// is reset, and the client may lose the answer.
func discard(c net.Conn) {
	if c.SetReadDeadline(time.Now().Add(100*time.Millisecond)) == nil {
		_, _ = io.CopyN(io.Discard, c, 1<<20)
	}
}
