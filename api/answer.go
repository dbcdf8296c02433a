package api

import (
	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/idempotency"
)

// answer is what a route's writer makes.
type answer struct {
	status      int
	contentType string
	body        []byte
	limits      []wire.Limit // for the RateLimit headers
	own         int          // so many of them, the first, are also in the body
	retryAfter  int64        // milliseconds; 0 for no header
	allow       string
	csp         string
	cache       string              // Cache-Control, where it is not no-store
	more        []idempotency.Field // further headers
}

const jsonType = "application/json"

// encode makes the answer a 200 with this JSON.
func (a *answer) encode(value any) {
	a.status, a.contentType, a.body = 200, jsonType, wire.Encode(value)
}

// add adds a header.
func (a *answer) add(name, value string) {
	a.more = append(a.more, idempotency.Field{Name: name, Value: value})
}

// refuse makes the answer this problem.
func (a *answer) refuse(p *problem) {
	*a = answer{}
	if p.charged != nil {
		a.show(&p.charged.quota)
	}
	a.status, a.contentType = kinds[p.kind].status, wire.ProblemType
	a.retryAfter, a.allow = p.retryAfter, p.allow
	a.body = p.body(a)
}

// writeJSON writes an answer that is a struct.
func writeJSON[T any](out *answer, what *T) { out.encode(what) }

// A page is a body with a type of its own.
type page struct {
	contentType string
	body        []byte
	csp         string

	// Of what may be kept: for how long, its tag, whether the caller has it already, and
	// the Content-Encoding.
	cache, etag string
	known       bool
	encoding    string
}

func writePage(out *answer, p *page) {
	out.status, out.contentType, out.csp, out.cache = 200, p.contentType, p.csp, p.cache
	if p.etag != "" {
		out.add("ETag", p.etag)
		out.add("Vary", "Accept-Encoding")
	}
	if p.known {
		out.status = 304
		return
	}
	if p.encoding != "" {
		out.add("Content-Encoding", p.encoding)
	}
	out.body = p.body
}
