package api

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/front"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/share"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// request is what the handlers of one request share: who sent it, what it holds, and what the
// log line tells of it. It is used again for another request.
type request struct {
	c      *fiber.Ctx
	began  time.Time
	id     string
	client netip.Addr
	live   *Live
	ctx    context.Context // ends with Options.SendDeadline; nil until the request is admitted
	cancel context.CancelFunc

	shown     access // what the key that came with the request opens
	shownName string
	hook      hooks.Hook  // that the path is of
	call      *hooks.Call // of the hook
	origin    error       // why it is not a genuine one
	key       string      // the name of the key that opened the route, empty if it needs none
	door      string      // in metrics

	keyless bool       // it holds a part of Server.keyless
	held    share.Held // of its caller
	decided func()     // held.Decided; made once

	route           string // instead of the Fiber route's name
	unlogged        bool
	mailbox         address.Address
	action, subject string // a subject as a hash
	idempotencyKey  string
	admission       throttle.ID
	counted         rules.Rule    // that an operator asks about, or the limiter of the action alone
	report          report.Report // of what was decided
	problem         string        // the name of the answer's problem
	span            trace.Span
	outcome         string      // what the request came to, as in the metrics
	unsolved        error       // why the challenge in a send is not solved
	visitor         netip.Addr  // that the caller sends for
	only            []slog.Attr // what operators are shown beside the log line
	level           slog.Level
	cause           error
	replayed        bool // the answer is that to an earlier request

	text  []byte // of the answer
	attrs []slog.Attr
}

var requests = sync.Pool{New: func() any {
	r := &request{}
	r.decided = r.held.Decided
	return r
}}

type localsKey struct{}

// requestOf returns the request that accessLog began.
func requestOf(c *fiber.Ctx) *request { return c.Locals(localsKey{}).(*request) }

// reports keeps a report for the log.
func (r *request) reports(of report.Report) *report.Report {
	r.report = of
	return &r.report
}

// begin makes the request, and sets the headers that every answer has. A cache must not keep an
// answer unless its handler says so: it is true for a moment, or for one caller.
func (s *Server) begin(c *fiber.Ctx) *request {
	r := requests.Get().(*request)
	r.c, r.began, r.live, r.door = c, time.Now(), s.live.Load(), httpDoor
	r.client = front.Client(c.Context(), s.with.TrustedProxies)
	r.id = front.RequestID(c.Request().Header.Peek("X-Request-Id"))
	c.Locals(localsKey{}, r)
	set(c, "X-Content-Type-Options", "nosniff")
	set(c, "Cache-Control", "no-store")
	set(c, "X-Request-Id", r.id)
	return r
}

// finish releases all that the request holds.
func (s *Server) finish(r *request) {
	if r.keyless {
		s.keyless.Leave()
	}
	if r.cancel != nil {
		r.cancel()
	}
	r.held.Leave()
	clear(r.attrs)
	clear(r.only)
	*r = request{decided: r.decided, text: r.text[:0], attrs: r.attrs[:0], only: r.only[:0]}
	requests.Put(r)
}

// set sets a header in the spelling that its name has here: Fiber's Set writes Ratelimit.
func set(c *fiber.Ctx, name, value string) {
	c.Response().Header.SetCanonical([]byte(name), []byte(value))
}
