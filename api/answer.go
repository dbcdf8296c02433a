package api

import (
	"encoding/json"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/idempotency"
)

// An answer is what a route's writer makes. Its memory is used again for the next.
type answer struct {
	status      int
	contentType string
	body        []byte
	page        []byte       // in place of body: nobody changes it, so no copy is made for those who are slow to read it
	limits      []wire.Limit // for the RateLimit headers
	own         int          // so many of them, the first, are also in the body
	retryAfter  int64        // milliseconds; 0 for no header
	allow       string
	csp         string
	cache       string              // Cache-Control, where it is not no-store
	more        []idempotency.Field // further headers
}

const jsonType = "application/json"

// json readies a yes for a body that is appended to.
func (a *answer) json() {
	a.status, a.contentType = 200, jsonType
}

func (a *answer) reset() {
	*a = answer{body: a.body[:0], limits: a.limits[:0]}
}

// add adds a header.
func (a *answer) add(name, value string) {
	a.more = append(a.more, idempotency.Field{Name: name, Value: value})
}

// refuse makes the answer this problem.
func (a *answer) refuse(p *problem) {
	a.reset()
	if p.charged != nil {
		a.show(&p.charged.quota)
	}
	a.status, a.contentType = kinds[p.kind].status, wire.ProblemType
	a.retryAfter, a.allow = p.retryAfter, p.allow
	a.body = p.append(a.body, a)
}

// writeJSON writes what is not asked for so often that it would need a writer of its own.
func writeJSON[T any](out *answer, what *T) {
	out.json()
	text, err := json.Marshal(what)
	if err != nil {
		panic(err) // these types have no value that is no JSON
	}
	out.body = append(out.body, text...)
}

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
	out.page = p.body
}
