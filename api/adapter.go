package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/valyala/fasthttp"
)

// An incoming is what a route's reader may look at. Its bytes are Fiber's and are gone
// after the request: a reader copies what it keeps.
type incoming struct {
	body      []byte
	parameter []byte // the path's, still percent-encoded
	header    *fasthttp.RequestHeader
	live      *Live
}

// A call is what a handler may know of the request beside its own part of it, and
// where it notes what the log is to say.
type call struct {
	requestID string
	key       string // the name of the caller's key, empty if none was asked for
	client    netip.Addr
	live      *Live
	deciding  chan struct{} // holds an entry of this request; nil once it is decided

	mailbox         address.Address
	action, subject string // a subject as a hash
	id              throttle.ID
	rule, limit     string
	wait            int64  // milliseconds until the next one, as the answer says
	delay           int64  // milliseconds a send is held back
	problem         string // the name of the answer, if that is a no
	replayed        bool   // the answer is that to an earlier request
	degraded        bool   // decided without the shared history
}

// A step is a route's whole work: a reader, a handler and a writer in a row.
type step func(ctx context.Context, c *call, in *incoming, out *answer) error

// steps puts the three together. The handler is the part that knows nothing of HTTP.
func steps[Request, Answer any](
	read func(*incoming) (Request, error),
	handle func(context.Context, *call, Request) (Answer, error),
	write func(*answer, *Answer),
) step {
	return func(ctx context.Context, c *call, in *incoming, out *answer) error {
		request, err := read(in)
		if err != nil {
			return err
		}
		done, err := handle(ctx, c, request)
		if err != nil {
			return err
		}
		write(out, &done)
		return nil
	}
}

// work is one request under way.
type work struct {
	began time.Time
	call  call
	in    incoming
	out   answer
	route *route
}

// serve runs a route for one request.
func (s *Server) serve(r *route, parameter string, fast *fasthttp.RequestCtx) {
	live := s.live.Load()
	w := &work{
		began: time.Now(), route: r,
		call: call{requestID: requestID(fast.Request.Header.Peek("X-Request-Id")), client: s.client(fast), live: live},
		in:   incoming{body: fast.Request.Body(), parameter: []byte(parameter), header: &fast.Request.Header, live: live},
	}
	var p *problem
	if err := s.run(w, fast); err != nil {
		p = problemOf(err)
		w.refuse(p)
	}
	s.reply(fast, w)
	s.record(w, p)
}

// run does the route's work and catches what panics in it.
func (s *Server) run(w *work, fast *fasthttp.RequestCtx) (err error) {
	r := w.route
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
	}()
	if w.call.key, err = s.admit(r.keys, &fast.Request.Header); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.alive, s.with.SendDeadline)
	defer cancel()
	who, err := s.enter(ctx, r, &w.call, fast.Conn().(*conn))
	if err != nil {
		return err
	}
	defer who.leave()
	defer w.call.decided()
	return r.step(ctx, &w.call, &w.in, &w.out)
}

// A panicError is what became of a panic. The stack is for the log.
type panicError struct {
	error
	stack string
}

// panicked is the error of a panic, where it is caught. The value of one that the runtime did
// not start may hold anything, and is not shown.
func panicked(value any) error {
	err := fmt.Errorf("panic of a %T", value)
	if known, ok := value.(runtime.Error); ok {
		err = fmt.Errorf("panic: %w", known)
	}
	return panicError{err, string(debug.Stack())}
}

// refuse makes the answer this problem, and tells the log.
func (w *work) refuse(p *problem) {
	w.out.refuse(p)
	w.call.problem = kinds[p.kind].name
	if p.charged != nil {
		w.call.note(&p.charged.quota)
	}
}

// reply hands the answer to Fiber.
func (s *Server) reply(fast *fasthttp.RequestCtx, w *work) {
	out, response := &w.out, &fast.Response
	response.SetStatusCode(out.status)
	response.SetBodyRaw(out.body)
	s.setHeaders(&response.Header, w)
	if s.draining.Load() {
		fast.SetConnectionClose()
	}
}

// record writes the request's log line and counts it.
func (s *Server) record(w *work, p *problem) {
	took := time.Since(w.began)
	s.metrics.request(w.route.name, w.out.status, took)
	level := slog.LevelInfo
	if p != nil {
		level = p.level()
	}
	if s.with.Log.Enabled(s.alive, level) {
		room := make([]slog.Attr, 0, 16)
		s.with.Log.LogAttrs(s.alive, level, "request", w.attrs(room, p, took)...)
	}
}

// attrs appends what the log line says.
func (w *work) attrs(attrs []slog.Attr, p *problem, took time.Duration) []slog.Attr {
	c := &w.call
	attrs = append(attrs,
		slog.String("request_id", c.requestID),
		slog.String("route", w.route.name),
		slog.Int("status", w.out.status),
		slog.Float64("ms", float64(took.Microseconds())/1000),
		slog.String("from", c.client.String()),
	)
	attrs = said(attrs, "problem", c.problem)
	attrs = said(attrs, "key", c.key)
	if !c.mailbox.IsZero() {
		attrs = append(attrs, slog.Any("mailbox", c.mailbox)) // written as its hash
	}
	if c.id.Valid() {
		attrs = append(attrs, slog.String("id", c.id.String()))
	}
	attrs = said(attrs, "action", c.action)
	attrs = said(attrs, "subject", c.subject)
	attrs = said(attrs, "rule", c.rule)
	attrs = said(attrs, "limit", c.limit)
	if c.wait > 0 {
		attrs = append(attrs, slog.Int64("wait_ms", c.wait))
	}
	if c.delay > 0 {
		attrs = append(attrs, slog.Int64("delay_ms", c.delay))
	}
	if c.replayed {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	if c.degraded {
		attrs = append(attrs, slog.Bool("degraded", true))
	}
	if p != nil && p.cause != nil {
		attrs = append(attrs, slog.String("cause", p.cause.Error()))
		if broken, ok := errors.AsType[panicError](p.cause); ok {
			attrs = append(attrs, slog.String("stack", broken.stack))
		}
	}
	return attrs
}

// said adds what there is to say.
func said(attrs []slog.Attr, name, what string) []slog.Attr {
	if what == "" {
		return attrs
	}
	return append(attrs, slog.String(name, what))
}
