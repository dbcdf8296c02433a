package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/countdown"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/valyala/fasthttp"
)

// A Server answers the HTTP API. New makes one; its methods may be called from any
// goroutine.
type Server struct {
	with     Options
	main     *endpoint
	ops      *endpoint // nil without Options.Ops
	metrics  *metrics
	delivery *delivery.Service
	docs     func() ([]byte, error)
	script   file // of the countdown
	types    file // of its interface
	console  consoleFiles

	began      int64 // when New made it
	tokens     *countdown.Tokens
	exposition exposition
	keyless    *keylessShare
	callers    map[string]*caller // by the name of their key
	operators  *caller            // all of them
	names      *names

	live      atomic.Pointer[Live]
	reloading sync.Mutex
	trying    sync.Mutex // held by the trial of other tiers that is under way

	insideTold atomic.Bool // of a visitor whose address is one inside a network

	// alive ends when Shutdown has lost its patience, open when it begins to drain:
	// what a fallback waits for then is not to come.
	alive, open  context.Context
	end, closing context.CancelFunc
	draining     atomic.Bool
}

// An endpoint is what answers at one listener.
type endpoint struct {
	door *door
	app  *fiber.App
}

const (
	headerSize = 8 << 10  // bytes of a request's line and header
	bodyLimit  = 16 << 10 // bytes of its body
	// opsConnections are open at once at the listener of operations.
	opsConnections = 128
	// writeTimeout bounds the writing of an answer.
	writeTimeout = 10 * time.Second
)

// New makes a Server. The error names the option that will not do.
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{with: o.withDefaults()}
	s.began = s.with.Now()
	s.callers = newCallers(s.with.APIKeys, s.with.MaxPerCaller)
	s.operators = newCaller(0)
	if err := s.useSecret(); err != nil {
		return nil, err
	}
	s.live.Store(&Live{})
	s.Reload(o.Live)
	var err error
	s.main = &endpoint{door: newDoor(s.with.MaxConnections, s.with.Log)}
	if s.metrics, err = newMetrics(s.with, s.main.door); err != nil {
		return nil, err
	}
	s.keyless = newKeylessShare(s.with, s.metrics)
	if err := s.component(); err != nil {
		return nil, err
	}
	if s.console, err = s.readConsole(); err != nil {
		return nil, err
	}
	s.docs = newDocs(s.with.OpenAPI, s.with.Version)
	s.alive, s.end = context.WithCancel(context.Background())
	s.open, s.closing = context.WithCancel(s.alive)
	s.delivery, err = delivery.New(delivery.Options{
		Relay: s.with.Relay, Codes: s.with.Codes, Requests: s.with.Requests, StoreTimeout: s.with.StoreTimeout,
		Now: s.with.Now, Log: s.with.Log, Metrics: s.metrics.delivery(),
	})
	if err != nil {
		return nil, err
	}
	return s, s.newApps()
}

// useSecret makes what rests on the secret, each with a key of its own.
func (s *Server) useSecret() (err error) {
	if s.tokens, err = countdown.New(s.with.Secret); err != nil {
		return fmt.Errorf("api: Secret: %w", err)
	}
	if s.names, err = newNames(s.with.Secret); err != nil {
		return fmt.Errorf("api: Secret: %w", err)
	}
	logged, err := secret.Key(s.with.Secret, mailboxesInLogs)
	if err != nil {
		return fmt.Errorf("api: Secret: %w", err)
	}
	s.with.Identity = s.with.Identity.WithLogKey([32]byte(logged))
	return nil
}

// newApps makes the application of each endpoint. Requests at that of operations have no share to
// keep to: the operator says who reaches it.
func (s *Server) newApps() (err error) {
	routes := s.routes()
	if s.with.Ops {
		s.ops = &endpoint{door: newDoor(opsConnections, s.with.Log)}
		if s.ops.app, err = s.newApp(opsRoutes(routes), s.fiberHandler(nowhere()), begun); err != nil {
			return err
		}
		routes = slices.DeleteFunc(routes, func(r route) bool { return r.path == "/metrics" })
	}
	s.main.app, err = s.newApp(routes, s.elsewhere(), func(next fasthttp.RequestHandler) fasthttp.RequestHandler {
		return begun(s.sharing(next))
	})
	return err
}

// newApp makes a Fiber application: its limits, and the routes. The first handler comes before all
// others.
func (s *Server) newApp(routes []route, elsewhere fiber.Handler, first func(fasthttp.RequestHandler) fasthttp.RequestHandler) (*fiber.App, error) {
	app := fiber.New(fiber.Config{
		StrictRouting:                true,
		CaseSensitive:                true,
		DisableStartupMessage:        true,
		DisablePreParseMultipartForm: true,
		BodyLimit:                    bodyLimit,
		ReadBufferSize:               headerSize,
		// The door bounds the connections; Fiber, left to do it, would answer in
		// its own words.
		Concurrency:  s.with.MaxConnections + 1024,
		ReadTimeout:  s.with.ReadTimeout,
		WriteTimeout: writeTimeout,
		IdleTimeout:  s.with.IdleTimeout,
	})
	if err := s.register(app, routes, elsewhere); err != nil {
		return nil, err
	}
	server := app.Server()
	server.Handler = first(s.oneMeaning(s.knownMethods(app.Handler())))
	server.HeaderReceived = headerReceived
	server.ErrorHandler = s.unread // Fiber's finds a timeout in whatever has the word in it
	server.CloseOnShutdown = true
	server.ConnState = func(c net.Conn, state fasthttp.ConnState) {
		if state == fasthttp.StateIdle {
			c.(*conn).answered()
		}
	}
	return app, nil
}

// headerReceived sees to it that nobody is asked for a body that is too large: without the
// question whether it is wanted, the length alone has it refused.
func headerReceived(header *fasthttp.RequestHeader) (asBefore fasthttp.RequestConfig) {
	closeHeader(header)
	if header.ContentLength() > bodyLimit {
		header.Del("Expect")
	}
	return asBefore
}

// begun tells a connection when a request of its own is being answered.
func begun(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fast *fasthttp.RequestCtx) {
		c := fast.Conn().(*conn)
		if !c.begin() {
			fast.SetConnectionClose()
			return
		}
		next(fast)
	}
}

// Serve answers what comes in through the listener, which is plain TCP, until Shutdown, and
// then returns nil. It closes the listener. A Server serves one listener, once.
func (s *Server) Serve(l net.Listener) error {
	if s.draining.Load() {
		return errors.Join(s.main.door.takeIn(l), s.main.door.Close())
	}
	return s.serveAt(s.main, l)
}

// ServeOps is Serve for the listener of operations: /metrics, /livez and /readyz, which no flood at
// the other listener reaches. It needs Options.Ops. It serves until Shutdown has ended the rest.
func (s *Server) ServeOps(l net.Listener) error {
	if s.ops == nil {
		return errors.New("api: Options.Ops is not set")
	}
	return s.serveAt(s.ops, l)
}

func (s *Server) serveAt(e *endpoint, l net.Listener) error {
	if err := e.door.takeIn(l); err != nil {
		return err
	}
	err := e.app.Server().Serve(e.door)
	if s.draining.Load() {
		return nil
	}
	return err
}

// unread answers a request that never arrived whole or that cannot be read, of which
// something did arrive: see conn.Read. What the library has to say about it is not passed on.
func (s *Server) unread(fast *fasthttp.RequestCtx, err error) {
	c := fast.Conn().(*conn)
	p := &problem{kind: badRequest, detail: "The request is not HTTP as it should be."}
	switch {
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		p = &problem{kind: headerTooLarge}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		p = &problem{kind: bodyTooLarge, detail: "A body may have " + strconv.Itoa(bodyLimit) + " bytes."}
	case c.stalled:
		p = &problem{kind: requestTimeout}
	}
	c.unread.Store(p.kind != requestTimeout)
	s.serve(&route{name: "unread", step: refusal(p)}, "", fast)
}
