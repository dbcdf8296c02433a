package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/countdown"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/secret"
)

// Server answers the HTTP API. New makes one; its methods may be called from any goroutine.
type Server struct {
	with     Options
	main     *endpoint
	ops      *endpoint // nil without Options.Ops
	metrics  *metrics
	delivery *delivery.Service
	validate *validator.Validate
	docs     func() ([]byte, error)
	console  console

	began      int64 // when New made it
	tokens     *countdown.Tokens
	exposition exposition
	keyless    share
	callers    map[string]*caller // by the name of their key
	operators  *caller            // all of them
	names      *names

	live      atomic.Pointer[Live]
	reloading sync.Mutex
	trying    sync.Mutex // held by the running trial of other tiers

	warnedOfInside atomic.Bool // that a visitor's address is one inside a network

	// alive ends when Shutdown has run out of time, open when it begins to drain: a fallback
	// need not wait any longer then.
	alive, open  context.Context
	end, closing context.CancelFunc
	draining     atomic.Bool
	deadlines    deadlines
}

const (
	headerSize = 8 << 10  // bytes of a request's line and header
	bodyLimit  = 16 << 10 // bytes of its body
	// opsConnections are open at once at the listener of operations.
	opsConnections = 128
	// writeTimeout bounds the writing of an answer.
	writeTimeout = 10 * time.Second
)

// New makes a Server. The error names the option that is wrong.
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{with: o.withDefaults()}
	s.began = s.with.Now()
	s.callers = newCallers(s.with.APIKeys, s.with.MaxPerCaller)
	s.operators = newCaller(0)
	s.keyless.most = keylessShare(s.with)
	if err := s.useSecret(); err != nil {
		return nil, err
	}
	s.live.Store(&Live{})
	s.Reload(o.Live)
	s.alive, s.end = context.WithCancel(context.Background())
	s.open, s.closing = context.WithCancel(s.alive)
	s.deadlines.parent, s.deadlines.length = s.alive, s.with.SendDeadline
	var err error
	if s.metrics, err = newMetrics(s.with, func() int { return s.main.connections() }); err != nil {
		return nil, err
	}
	if s.validate, err = newValidate(s.with.Identity); err != nil {
		return nil, err
	}
	if s.console, err = readConsole(s.with.AdminKeys.IsZero()); err != nil {
		return nil, err
	}
	s.docs = newDocs(s.with.OpenAPI, s.with.Version)
	s.delivery, err = delivery.New(delivery.Options{
		Relay: s.with.Relay, Codes: s.with.Codes, Requests: s.with.Requests, StoreTimeout: s.with.StoreTimeout,
		Now: s.with.Now, Log: s.with.Log, Metrics: s.metrics.delivery(),
	})
	if err != nil {
		return nil, err
	}
	s.newEndpoints()
	return s, nil
}

// useSecret makes what needs the secret, each with a key of its own.
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

func (s *Server) newEndpoints() {
	main := s.newApp()
	main.Use("/countdown", cors)
	main.Use(s.share)
	if s.with.Fallback != nil {
		main.Use(s.fallback())
	}
	s.routes(main)
	s.main = s.newEndpoint(main)
	if s.with.Ops {
		ops := s.newApp()
		s.opsRoutes(ops)
		s.ops = s.newEndpoint(ops)
	}
}

// newApp makes a Fiber application with the limits and the middleware of every endpoint.
func (s *Server) newApp() *fiber.App {
	app := fiber.New(fiber.Config{
		StrictRouting:                true,
		CaseSensitive:                true,
		DisableStartupMessage:        true,
		DisablePreParseMultipartForm: true,
		BodyLimit:                    bodyLimit,
		ReadBufferSize:               headerSize,
		// The listener bounds the connections; beyond this bound Fiber answers in its own words.
		Concurrency:  s.with.MaxConnections + 1024,
		ReadTimeout:  s.with.ReadTimeout,
		WriteTimeout: writeTimeout,
		IdleTimeout:  s.with.IdleTimeout,
		ErrorHandler: s.fail,
	})
	app.Use(s.accessLog)
	return app
}

// endpoint answers at one listener.
type endpoint struct {
	app *fiber.App

	mu       sync.Mutex
	listener net.Listener
	closed   bool
}

func (s *Server) newEndpoint(app *fiber.App) *endpoint {
	server := app.Server()
	server.Handler = s.inFront(app)
	server.HeaderReceived = refuseLargeEarly
	server.ErrorHandler = s.unread(app)
	server.CloseOnShutdown = true
	return &endpoint{app: app}
}

// connections is the number of open connections.
func (e *endpoint) connections() int { return int(max(0, e.app.Server().GetOpenConnectionsCount())) }

// Serve answers requests from the listener, which is plain TCP, until Shutdown, and then returns
// nil. It closes the listener. A Server serves one listener, once.
func (s *Server) Serve(l net.Listener) error {
	return s.main.serve(l, s.with.MaxConnections, s.with.Log)
}

// ServeOps is Serve for the listener of operations: /metrics, /livez and /readyz, which are
// independent of the load at the other listener. It needs Options.Ops. It ends after Serve.
func (s *Server) ServeOps(l net.Listener) error {
	if s.ops == nil {
		return errors.New("api: Options.Ops is not set")
	}
	return s.ops.serve(l, opsConnections, s.with.Log)
}
