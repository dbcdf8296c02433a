package api

import (
	"bytes"
	"slices"

	"github.com/valyala/fasthttp"
)

// Why a request is refused before anything else is looked at.
const (
	twoLengths        = "The request says in two ways how long it is."
	unknownCoding     = "The only Transfer-Encoding there is here is chunked, in HTTP/1.1."
	oddName           = "A header line does not begin with a name and a colon."
	foldedLine        = "A header line begins with a blank."
	controlCharacter  = "The request's line or header has a control character, or a blank in its path."
	noHost            = "The request has no Host."
	twoHosts          = "The request has more than one Host."
	twoAuthorizations = "The request has more than one Authorization."
	oddTarget         = "The request asks for neither a path nor a URL of http or https."
	unknownVersion    = "The request is neither HTTP/1.0 nor HTTP/1.1."
	trailer           = "The request has header lines behind its body."
)

// oneMeaning refuses the requests that a proxy in front may have read in another way,
// so that the end of one caller's request would be the beginning of another's. The
// library reads them somehow, and the connection cannot be trusted after that. Nor can
// it after a body in chunks: where one ends cannot be seen from here, and the library
// takes as the length whatever a chunk's line begins with.
func (s *Server) oneMeaning(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fast *fasthttp.RequestCtx) {
		header := &fast.Request.Header
		why, last := misframed(version(header), header.RequestURI(), header.RawHeaders())
		if why == "" && hasTrailer(header) {
			why = trailer
		}
		if why != "" {
			distrust(fast)
			s.serve(&route{name: "unread", step: refusal(&problem{kind: badRequest, detail: why})}, "", fast)
			return
		}
		header.Del(endOfHeader) // no fallback could pass it on
		next(fast)
		if last {
			distrust(fast)
		}
	}
}

// distrust ends the connection with this request, of which the rest may be still to come.
func distrust(fast *fasthttp.RequestCtx) {
	fast.Conn().(*conn).unread.Store(true)
	fast.SetConnectionClose()
}

// endOfHeader is put behind the last field of a header that has chunks behind it. It is a name
// that no line can have.
const endOfHeader = ""

func closeHeader(header *fasthttp.RequestHeader) {
	if len(header.Peek("Transfer-Encoding")) > 0 { // with a GET, too
		header.Add(endOfHeader, "")
	}
}

// hasTrailer reports whether lines came behind a body in chunks. The library adds them to the
// header, where they would be taken for what a proxy in front has written; and it may pass them
// on as its client wrote them.
func hasTrailer(header *fasthttp.RequestHeader) bool {
	names := header.PeekKeys()
	end := slices.IndexFunc(names, func(name []byte) bool { return len(name) == 0 })
	return end >= 0 && end < len(names)-1
}

// version is what the request says that it is written in. Where it says nothing after a
// blank the library has HTTP/1.1 for it, and knows better.
func version(header *fasthttp.RequestHeader) []byte {
	if said := header.Protocol(); header.IsHTTP11() == bytes.Equal(said, []byte("HTTP/1.1")) {
		return said
	}
	return nil
}

// misframed says why a request could be read in more than one way, or nothing, and
// whether it has to be its connection's last because what follows it could.
func misframed(protocol, uri, header []byte) (why string, last bool) {
	http11 := bytes.Equal(protocol, []byte("HTTP/1.1"))
	if !http11 && !bytes.Equal(protocol, []byte("HTTP/1.0")) {
		return unknownVersion, true
	}
	if hasControl(uri) || bytes.ContainsAny(uri, " \t") {
		return controlCharacter, true
	}
	var all tally
	for len(header) > 0 {
		line, rest, _ := bytes.Cut(header, []byte{'\n'})
		header = rest
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if why := misread(line, http11); why != "" {
			return why, true
		}
		all.count(line)
	}
	if why = all.problem(http11); why == "" {
		why = misdirected(uri, bytes.Trim(all.host, " \t"))
	}
	// The library takes a line that says no version for HTTP/1.0.
	return why, why != "" || all.chunks || !http11
}

// A tally is how often a header says what it may say once.
type tally struct {
	lengths, hosts, authorizations int
	host                           []byte
	chunks                         bool
}

func (t *tally) count(line []byte) {
	switch {
	case isHeader(line, "content-length:"):
		t.lengths++
	case isHeader(line, "transfer-encoding:"):
		t.lengths++
		t.chunks = true
	case isHeader(line, "host:"):
		t.hosts++
		t.host = line[len("host:"):]
	case isHeader(line, "authorization:"):
		t.authorizations++
	}
}

func (t *tally) problem(http11 bool) string {
	switch {
	case t.lengths > 1:
		return twoLengths
	case t.hosts > 1:
		return twoHosts
	case t.authorizations > 1:
		return twoAuthorizations
	case http11 && t.hosts == 0:
		return noHost
	}
	return ""
}

// misdirected says why a request's target could be read as another host's or another
// path, or nothing. The library takes what follows two slashes for a host where the
// header names none.
func misdirected(uri, host []byte) string {
	if string(uri) == "*" || bytes.HasPrefix(uri, []byte("/")) && (len(host) > 0 || !bytes.HasPrefix(uri, []byte("//"))) {
		return ""
	}
	scheme, rest, absolute := bytes.Cut(uri, []byte("://"))
	if !absolute || !bytes.EqualFold(scheme, []byte("http")) && !bytes.EqualFold(scheme, []byte("https")) {
		return oddTarget
	}
	if end := bytes.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if !bytes.EqualFold(rest, host) {
		return twoHosts
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
	if name, _, ok := bytes.Cut(line, []byte{':'}); !ok || !isToken(name) {
		return oddName
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

// isToken reports whether a header may have this name (RFC 9110, 5.6.2).
func isToken(name []byte) bool {
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) < 0:
			return false
		}
	}
	return len(name) > 0
}

// isHeader reports whether a line is this header's; its name is given with the colon.
func isHeader(line []byte, name string) bool {
	return len(line) >= len(name) && line[0]|0x20 == name[0] && bytes.EqualFold(line[:len(name)], []byte(name))
}
