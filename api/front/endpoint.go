// Package front stands between a listener and the routes of the API. It holds requests to limits of size and time,
// refuses those that a proxy could read in another way, finds the client's address, and ends the serving.
package front

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
)

const (
	headerSize = 8 << 10 // bytes of a request's line and header
	// BodyLimit is how many bytes the body of a request may have.
	BodyLimit = 16 << 10
	// Bodies longer than largeBody need no key, so their number is bounded: largeBodies at once, and as many more
	// in each readTimeout.
	largeBody   = 64 << 10
	largeBodies = 16
	// readTimeout bounds the arrival of a request, first to last byte, and writeTimeout the writing
	// of an answer. A kept connection may be silent for idleTimeout.
	readTimeout, writeTimeout, idleTimeout = 5 * time.Second, 10 * time.Second, 60 * time.Second
)

// Endpoint answers at one listener.
type Endpoint struct {
	App    *fiber.App
	Bodies map[string]int // how many bytes the body of a request may have, for each path where it is not BodyLimit
	large  *rate.Limiter
	most   int
	log    *slog.Logger
	refuse Refuse

	mu       sync.Mutex
	listener *listener
	closed   bool
}

// New makes an endpoint for so many connections at once. The caller adds routes to its App. Refuse
// answers the requests that do not reach them.
func New(connections int, log *slog.Logger, fail fiber.ErrorHandler, refuse Refuse) *Endpoint {
	return &Endpoint{most: connections, log: log, refuse: refuse, large: rate.NewLimiter(rate.Every(readTimeout/largeBodies), largeBodies), App: fiber.New(fiber.Config{
		StrictRouting:                true,
		CaseSensitive:                true,
		DisableStartupMessage:        true,
		DisablePreParseMultipartForm: true,
		BodyLimit:                    BodyLimit,
		ReadBufferSize:               headerSize,
		// The listener bounds the connections; beyond this bound Fiber answers in its own words.
		Concurrency:  connections + 1024,
		ReadTimeout:  readTimeout,
		WriteTimeout: writeTimeout,
		IdleTimeout:  idleTimeout,
		ErrorHandler: fail,
	})}
}

// Open checks requests before the routes of the App, which must all be there.
func (e *Endpoint) Open() {
	server := e.App.Server()
	server.Handler = e.check(e.App.Handler())
	server.HeaderReceived = e.boundBody
	server.ErrorHandler = e.unread
	server.CloseOnShutdown = true
}

// Connections returns the number of open connections.
func (e *Endpoint) Connections() int { return int(max(0, e.App.Server().GetOpenConnectionsCount())) }

// Serve answers requests from the listener until Drain, and then returns nil. It closes the listener.
func (e *Endpoint) Serve(l net.Listener) error {
	e.mu.Lock()
	tcp, _ := l.(*net.TCPListener)
	e.listener = &listener{Listener: netutil.LimitListener(l, e.most), tcp: tcp, log: e.log}
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return e.listener.end()
	}
	return e.App.Server().Serve(e.listener)
}

// quiet is how long kept connections may still bring a request after the listener is closed. Its
// answer tells the client that the connection ends; a request sent into a closing one would be lost.
const quiet = 100 * time.Millisecond

// Drain accepts no connection any more, closes those that are idle, and waits for the requests in
// progress until ctx ends.
func (e *Endpoint) Drain(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	l := e.listener
	e.mu.Unlock()
	if l != nil {
		if err := l.Close(); err != nil {
			return err
		}
	}
	Pause(ctx, quiet)
	return e.App.Server().ShutdownWithContext(ctx)
}

// Handled waits until no request is in progress, or ctx ends.
func (e *Endpoint) Handled(ctx context.Context) {
	for e.App.Server().GetCurrentConcurrency() > 0 && ctx.Err() == nil {
		Pause(ctx, quiet/20)
	}
}

// Pause waits until d has passed or ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
