package api

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-playground/validator/v10"
	"github.com/goccy/go-yaml"
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/countdown"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/internal/timeout"
)

// Server answers the HTTP API. New makes one; its methods may be called from any goroutine.
type Server struct {
	with     Options
	main     *endpoint
	ops      *endpoint
	metrics  *metrics
	delivery *delivery.Service
	reading  json.Options // of bodies
	validate *validator.Validate
	console  []byte

	docs, contractJSON func() ([]byte, error)
	script, types      func() (web.Component, error) // of the countdown
	stores             storeCheck

	began      int64 // when New made it
	tokens     *countdown.Tokens
	exposition exposition
	keyless    share
	callers    map[string]*caller // by the name of their key
	operators  *caller            // all of them
	names      names

	live   atomic.Pointer[Live]
	trying sync.Mutex // held by the running trial of other tiers

	warnedOfInside atomic.Bool // that a visitor's address is one inside a network

	// alive ends when Shutdown has run out of time; open, which fallbacks have, when it begins to
	// drain.
	alive, open  context.Context
	end, closing context.CancelFunc
	draining     atomic.Bool
	deadlines    timeout.Group
}

const (
	headerSize = 8 << 10  // bytes of a request's line and header
	bodyLimit  = 16 << 10 // bytes of its body
	// opsConnections are open at once at the listener of operations.
	opsConnections = 128
	// readTimeout bounds the arrival of a request, first to last byte, and writeTimeout the writing
	// of an answer. A kept connection may be silent for idleTimeout.
	readTimeout, writeTimeout, idleTimeout = 5 * time.Second, 10 * time.Second, 60 * time.Second
)

// New makes a Server.
func New(o Options) (s *Server, err error) {
	s = &Server{
		with: o, began: o.Now(), callers: newCallers(o.APIKeys, RequestsPerKey(o.MaxConnections)), operators: newCaller(0), exposition: newExposition(),
		docs:         sync.OnceValues(func() ([]byte, error) { return web.Docs(o.OpenAPI, o.Version) }),
		contractJSON: sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(o.OpenAPI) }),
		script:       sync.OnceValues(web.Countdown), types: sync.OnceValues(web.CountdownTypes),
	}
	s.keyless.most = keylessShare(o)
	if err := s.useSecret(); err != nil {
		return nil, fmt.Errorf("api: Secret: %w", err)
	}
	s.Reload(o.Live)
	s.alive, s.end = context.WithCancel(context.Background())
	s.open, s.closing = context.WithCancel(s.alive)
	s.deadlines.Length = o.SendDeadline
	s.metrics = newMetrics(o, func() int { return s.main.connections() })
	s.validate, s.reading = newValidate(), strict(s.with.Identity)
	if s.console, err = consolePage(o.APIKeys.IsZero() && o.AdminKeys.IsZero()); err != nil {
		return nil, err
	}
	s.delivery = delivery.New(delivery.Options{
		Relay: o.Relay, Codes: o.Codes, Requests: o.Requests, StoreTimeout: o.StoreTimeout,
		Now: o.Now, Log: o.Log, Metrics: delivery.Metrics{Decisions: s.metrics.decisions, Relays: s.metrics.relays, Refunds: s.metrics.refunds},
	})
	s.newEndpoints()
	return s, nil
}

// useSecret derives a key of its own for everything that needs the secret.
func (s *Server) useSecret() (err error) {
	if s.tokens, err = countdown.New(s.with.Secret); err != nil {
		return err
	}
	if s.names, err = newNames(s.with.Secret); err != nil {
		return err
	}
	logged, err := secret.Key(s.with.Secret, mailboxesInLogs)
	if err != nil {
		return err
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
	ops := s.newApp()
	s.opsRoutes(ops)
	s.ops = s.newEndpoint(ops)
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
		ReadTimeout:  readTimeout,
		WriteTimeout: writeTimeout,
		IdleTimeout:  idleTimeout,
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

// connections returns the number of open connections.
func (e *endpoint) connections() int { return int(max(0, e.app.Server().GetOpenConnectionsCount())) }

// Serve answers requests from the listener, which is plain TCP, until Shutdown, and then returns
// nil. It closes the listener. A Server serves one listener, once.
func (s *Server) Serve(l net.Listener) error {
	return s.main.serve(l, s.with.MaxConnections, s.with.Log)
}

// ServeOps serves /metrics, /livez and /readyz from a listener of their own, independent of the
// load on the other. It ends after Serve.
func (s *Server) ServeOps(l net.Listener) error {
	return s.ops.serve(l, opsConnections, s.with.Log)
}
