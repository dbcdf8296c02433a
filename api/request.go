package api

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/front"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/share"
	"github.com/mailgate/mailgate/throttle/rules"
)

// request is what the handlers of one request share: who sent it, what it holds, and what it comes to. It is used again
// for another request.
type request struct {
	ledger.Outcome

	c      *fiber.Ctx
	live   *delivery.Live
	ctx    context.Context // ends with Options.SendDeadline; nil until the request is admitted
	cancel context.CancelFunc

	keyOpens   access // what the key that came with the request opens
	keyName    string
	unknownKey bool        // the key that came with it is none
	hook       hooks.Hook  // that the path is of
	call       *hooks.Call // of the hook
	origin     error       // why it is not a genuine one

	keyless bool       // it holds a part of Server.keyless
	held    share.Held // of its caller
	decided func()     // held.Decided; made once

	idempotencyKey string
	attempt        *delivery.Attempt // of a send
	counted        rules.Rule        // that an operator asks about, or the limiter of the action alone
	unsolved       error             // why the challenge in a send is not solved

	text []byte // of the answer
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
	r.Report = of
	return &r.Report
}

// begin makes the request, and sets the headers that every answer has. A cache must not keep an
// answer unless its handler says so: it is true for a moment, or for one caller.
func (s *Server) begin(c *fiber.Ctx) *request {
	r := requests.Get().(*request)
	r.c, r.Began, r.live, r.Door = c, time.Now(), s.with.Delivery.Live(), ledger.HTTP
	r.From = front.Client(c.Context(), s.with.Access.TrustedProxies)
	if r.RequestID = string(c.Request().Header.Peek("X-Request-Id")); !apikey.IsName(r.RequestID) { // no address may be in the log
		r.RequestID = hex.EncodeToString(binary.BigEndian.AppendUint64(nil, rand.Uint64()))
	}
	c.Locals(localsKey{}, r)
	set(c, "X-Content-Type-Options", "nosniff")
	set(c, "Cache-Control", "no-store")
	set(c, "X-Request-Id", r.RequestID)
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
	*r = request{decided: r.decided, text: r.text[:0]}
	requests.Put(r)
}

// set sets a header in the spelling that its name has here: Fiber's Set writes Ratelimit.
func set[text string | []byte](c *fiber.Ctx, name string, value text) {
	c.Response().Header.SetCanonical([]byte(name), []byte(value))
}
