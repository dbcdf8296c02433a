package api

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// Why a request is refused before anything else is looked at.
const (
	twoLengths        = "The request says in two ways how long it is."
	unknownCoding     = "The only Transfer-Encoding there is here is chunked, in HTTP/1.1."
	foldedLine        = "A header line begins with a blank."
	controlCharacter  = "The request's line or header has a control character, or a blank in its path."
	twoHosts          = "The request has more than one Host."
	twoAuthorizations = "The request has more than one Authorization."
	unknownVersion    = "The request is neither HTTP/1.0 nor HTTP/1.1."
)

// oneMeaning refuses the requests that a proxy in front may have read in another way,
// so that the end of one caller's request would be the beginning of another's. The
// library reads them somehow, and the connection cannot be trusted after that.
func (s *Server) oneMeaning(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fast *fasthttp.RequestCtx) {
		header := &fast.Request.Header
		why := misframed(header.Protocol(), header.RequestURI(), header.RawHeaders())
		if why == "" {
			next(fast)
			return
		}
		fast.Conn().(*conn).unread.Store(true)
		fast.SetConnectionClose()
		s.serve(&route{name: "unread", step: refusal(&problem{kind: badRequest, detail: why})}, "", fast)
	}
}

// misframed says why a request could be read in more than one way, or nothing.
func misframed(protocol, uri, header []byte) string {
	http11 := bytes.Equal(protocol, []byte("HTTP/1.1"))
	if !http11 && !bytes.Equal(protocol, []byte("HTTP/1.0")) {
		return unknownVersion
	}
	if hasControl(uri) || bytes.ContainsAny(uri, " \t") {
		return controlCharacter
	}
	var lengths, hosts, authorizations int
	for len(header) > 0 {
		line, rest, _ := bytes.Cut(header, []byte{'\n'})
		header = rest
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if why := misread(line, http11); why != "" {
			return why
		}
		switch {
		case isHeader(line, "content-length:"), isHeader(line, "transfer-encoding:"):
			lengths++
		case isHeader(line, "host:"):
			hosts++
		case isHeader(line, "authorization:"):
			authorizations++
		}
	}
	switch {
	case lengths > 1:
		return twoLengths
	case hosts > 1:
		return twoHosts
	case authorizations > 1:
		return twoAuthorizations
	}
	return ""
}

// misread says what is wrong with one header line, or nothing.
func misread(line []byte, http11 bool) string {
	if len(line) == 0 {
		return ""
	}
	if line[0] == ' ' || line[0] == '\t' {
		return foldedLine
	}
	if hasControl(line) {
		return controlCharacter
	}
	const coding = "transfer-encoding:"
	if isHeader(line, coding) && !(http11 && string(bytes.Trim(line[len(coding):], " ")) == "chunked") {
		return unknownCoding
	}
	return ""
}

// hasControl reports whether there is a control character other than a tab in a line.
func hasControl(line []byte) bool {
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

// isHeader reports whether a line is this header's; its name is given with the colon.
func isHeader(line []byte, name string) bool {
	return len(line) >= len(name) && line[0]|0x20 == name[0] && bytes.EqualFold(line[:len(name)], []byte(name))
}
