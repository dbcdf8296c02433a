package sandbox

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/mailgate/mailgate/clock"
)

// Options say how a Server behaves. The zero value is a plain relay without
// TLS on a free port, keeping 200 mails or 32 MiB, whichever is reached first.
type Options struct {
	// Listen is a loopback address such as "127.0.0.1:0", the default.
	Listen string
	// KeepMessages and KeepBytes bound what is remembered.
	KeepMessages int
	KeepBytes    int
	// MaxMessageBytes bounds one mail; it is announced as SIZE. 1 MiB if zero.
	MaxMessageBytes int
	// TLS, when set, offers STARTTLS, or with ImplicitTLS speaks TLS from the
	// first octet.
	TLS         *tls.Config
	ImplicitTLS bool
	// User and Password, when set, are demanded by AUTH (PLAIN or LOGIN,
	// offered under TLS alone) before any mail is taken.
	User, Password string
	// IdleTimeout closes connections that say nothing. Five minutes if zero.
	IdleTimeout time.Duration
	// Now is the clock, in Unix milliseconds. The system's if nil.
	Now func() int64
	// Logger may be nil. Addresses and mails are never logged.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	o.KeepMessages = cmp.Or(o.KeepMessages, 200)
	o.KeepBytes = cmp.Or(o.KeepBytes, 32<<20)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 1<<20)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 5*time.Minute)
	if o.Now == nil {
		o.Now = clock.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server is a running sandbox. Its methods may be used from any goroutine.
type Server struct {
	options  Options
	listener net.Listener
	inbox    *inbox
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	stats  Stats
	closed bool
}

// Stats count connections, for tests that hold a client to its promises.
type Stats struct {
	Accepted int // connections ever
	Open     int // connections now
	MostOpen int // the most at any one time
}

// Start listens and serves until Close.
func Start(options Options) (*Server, error) {
	o := options.withDefaults()
	if err := check(o); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("sandbox: listen: %w", err)
	}
	return startOn(listener, o), nil
}

func startOn(listener net.Listener, o Options) *Server {
	s := &Server{
		options:  o,
		listener: listener,
		inbox:    newInbox(o.KeepMessages, o.KeepBytes),
		conns:    map[net.Conn]struct{}{},
	}
	s.running.Add(1)
	go s.accept()
	return s
}

func check(o Options) error {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("sandbox: listen address: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("sandbox: listens on a loopback address only")
	}
	if o.TLS == nil && (o.ImplicitTLS || o.User != "") {
		return errors.New("sandbox: implicit TLS and AUTH need a TLS configuration")
	}
	return nil
}

// Addr is the host and port it listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is the relay URL a client needs to reach it, user and password
// included. Under TLS the client must also be told to trust the certificate.
func (s *Server) URL() string {
	u := url.URL{Scheme: "smtp", Host: s.Addr()}
	switch {
	case s.options.ImplicitTLS:
		u.Scheme = "smtps"
	case s.options.TLS == nil:
		u.RawQuery = "tls=none"
	}
	if s.options.User != "" {
		u.User = url.UserPassword(s.options.User, s.options.Password)
	}
	return u.String()
}

// Stats are the connection counts at this moment.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// DropConnections cuts every open connection without a word and goes on
// listening, as a relay does that is restarted.
func (s *Server) DropConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
}

// Close stops listening, cuts what is connected and returns when every
// connection has ended. The mails can still be read afterwards.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.listener.Close()
	s.DropConnections()
	s.running.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("sandbox: close: %w", err)
	}
	return nil
}

func (s *Server) accept() {
	defer s.running.Done()
	for {
		conn, err := s.next()
		if err != nil {
			return
		}
		if s.enter(conn) {
			go s.serve(conn)
		}
	}
}

// next waits out what keeps connections from being accepted, too many open files most
// likely, which is no reason to stop for good.
func (s *Server) next() (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		conn, err := s.listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return conn, err
		}
		s.options.Logger.Warn("sandbox cannot accept", "error", err, "again_in", pause)
		time.Sleep(pause)
	}
}

// enter books a connection, unless the server is closing.
func (s *Server) enter(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}
	s.conns[conn] = struct{}{}
	s.stats.Accepted++
	s.stats.Open++
	s.stats.MostOpen = max(s.stats.MostOpen, s.stats.Open)
	s.running.Add(1)
	return true
}

// leave ends a connection. It is counted out before it is closed, so that a
// client that saw the end and comes back is never counted twice.
func (s *Server) leave(conn net.Conn) {
	s.mu.Lock()
	delete(s.conns, conn)
	s.stats.Open--
	s.mu.Unlock()
	conn.Close()
	s.running.Done()
}

func (s *Server) serve(conn net.Conn) {
	defer s.leave(conn)
	session := newSession(s, conn)
	if s.options.ImplicitTLS {
		if err := session.startTLS(); err != nil {
			s.options.Logger.Debug("sandbox: TLS handshake", "error", err)
			return
		}
	}
	if err := session.converse(); err != nil {
		s.options.Logger.Debug("sandbox: conversation ended", "error", err)
	}
}

// List returns what is kept, oldest first.
func (s *Server) List() []Message { return s.inbox.list() }

// Get returns the mail with this id, if it is still kept.
func (s *Server) Get(id uint64) (Message, bool) { return s.inbox.get(id) }

// Clear forgets every mail. Ids go on counting.
func (s *Server) Clear() { s.inbox.clear() }

// Wait returns the newest mail to this envelope recipient, or waits for one
// until ctx ends. Letter case does not matter.
func (s *Server) Wait(ctx context.Context, to string) (Message, error) {
	return s.WaitAfter(ctx, to, 0)
}

// WaitAfter is Wait for a mail whose id is greater than after: the next one,
// when a first is known already. An empty recipient stands for any.
func (s *Server) WaitAfter(ctx context.Context, to string, after uint64) (Message, error) {
	m, err := s.inbox.wait(ctx, to, after)
	if err != nil {
		return Message{}, fmt.Errorf("sandbox: wait for mail: %w", err)
	}
	return m, nil
}
