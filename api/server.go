package api

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-playground/validator/v10"
	"github.com/mailgate/mailgate/api/front"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/internal/countdown"
	"github.com/mailgate/mailgate/internal/share"
	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"
)

// Server answers the HTTP API. New makes one; its methods may be called from any goroutine.
type Server struct {
	with     Options
	main     *front.Endpoint
	ops      *front.Endpoint
	metrics  *metrics
	reading  json.Options // of bodies
	validate *validator.Validate
	stores   storeCheck

	began      int64 // when New made it
	tokens     *countdown.Tokens
	exposition exposition
	keyless    share.Share
	callers    map[string]*share.Caller // by the name of their key
	operators  *share.Caller            // all of them
	names      names
	following  atomic.Int32

	trying sync.Mutex // held by the running trial of other tiers or rules
	notMe  notMe

	challenges *challenge.Issuer

	checks         chan struct{} // of calls of hooks, that are in progress
	warnedOfInside atomic.Bool   // that a visitor's address is one inside a network

	// alive ends when Shutdown has run out of time; open when it begins to drain.
	alive, open  context.Context
	end, closing context.CancelFunc
	draining     atomic.Bool
}

// opsConnections are open at once at the listener of operations.
const opsConnections = 128

// New makes a Server.
func New(o Options) (s *Server, err error) {
	s = &Server{
		with: o, began: o.Now(), callers: newCallers(o.Access.APIKeys, o.Hooks, RequestsPerKey(o.MaxConnections)), operators: share.NewCaller(0), exposition: exposition{gatherings: rate.NewLimiter(10, 10)},
		checks: make(chan struct{}, 2*runtime.GOMAXPROCS(0)), // which leave time of the processors to sends
	}
	if !o.Access.APIKeys.IsZero() { // else every program of this machine is a caller
		// A browser loads a page over six connections. A larger share for each processor slows sends during a flood.
		s.keyless.Most = int64(max(8, 2*runtime.GOMAXPROCS(0)))
	}
	var noTokens, noChallenges, noNames error
	s.tokens, noTokens = countdown.New(o.Secret)
	s.challenges, noChallenges = challenge.New(o.Secret, o.Turnstile)
	s.names, noNames = newNames(o.Secret)
	if err := cmp.Or(noTokens, noChallenges, noNames); err != nil {
		return nil, fmt.Errorf("api: Secret: %w", err)
	}
	if s.notMe, err = newNotMe(); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s.alive, s.end = context.WithCancel(context.Background())
	s.open, s.closing = context.WithCancel(s.alive)
	s.metrics = newMetrics(o, func() int { return s.main.Connections() })
	s.validate, s.reading = newValidate(), strict(s.with.Identity)
	s.newEndpoints()
	return s, nil
}

func (s *Server) newEndpoints() {
	s.main = s.newEndpoint(s.with.MaxConnections)
	s.main.Bodies = map[string]int{}
	for _, hook := range s.with.Hooks {
		s.main.Bodies[hookPath(hook)] = hooks.MaxBody(hook)
	}
	app := s.main.App
	app.Use("/countdown", cors)
	app.Use(s.share)
	s.routes(app)
	s.main.Open()
	s.ops = s.newEndpoint(opsConnections)
	// The operator controls which clients reach this one, so no share bounds them.
	s.ops.App.Get("/livez", s.showLive).Name("livez")
	s.ops.App.Get("/readyz", s.showReady).Name("readyz")
	s.ops.App.Get("/metrics", s.showMetrics).Name("metrics")
	s.ops.Open()
}

func (s *Server) newEndpoint(connections int) (e *front.Endpoint) {
	e = front.New(connections, s.with.Log, s.fail, func(fast *fasthttp.RequestCtx, status int, detail string) {
		c := e.App.AcquireCtx(fast)
		defer e.App.ReleaseCtx(c)
		r := s.begin(c)
		defer s.finish(r)
		r.Route = "unread"
		if unrouted[status] == methodUnknown {
			r.Route = "unknown-method"
		}
		_ = s.fail(c, &problem{kind: unrouted[status], detail: detail}) // never fails
		s.record(r)
	})
	e.App.Use(s.accessLog)
	return e
}

// Serve answers requests from the listener, which is plain TCP, until Shutdown, and then returns
// nil. It closes the listener. A Server serves one listener, once.
func (s *Server) Serve(l net.Listener) error {
	return s.main.Serve(l)
}

// ServeOps serves /metrics, /livez and /readyz from a listener of their own, independent of the
// load on the other. It ends after Serve.
func (s *Server) ServeOps(l net.Listener) error {
	return s.ops.Serve(l)
}
