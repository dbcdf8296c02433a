package submission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Options are what a Server works with. All are required unless their comment says otherwise.
type Options struct {
	Delivery *delivery.Service
	Rules    func() *rules.Set // in force
	Identity address.Identity
	// Keys sign clients in. Without any, clients on this machine need none.
	Keys apikey.Keys
	// WrongKey counts a wrong password by the address it came from, and reports whether there are too many.
	WrongKey func(from netip.Addr) bool
	// Records keep what came of the newest emails, so that a lost reply sends none again.
	Records keyed.Store
	// Senders are the addresses that email may be from.
	Senders Senders
	// Defer are the names of keys whose emails may come late: a limit defers them instead of
	// refusing them.
	Defer []string
	// Domain is how the server names itself.
	Domain         string
	MaxBytes       int // of one email
	MaxConnections int
	// TLS, unless it is nil, is offered by STARTTLS.
	TLS *tls.Config
	Log *slog.Logger
	// Count counts a recipient by what came of it: "sent", or a delivery.Kind, with Limited the limit.
	Count func(outcome, rule, limit string)
	// Shadow counts a rule that would have refused an admitted recipient.
	Shadow func(rule, limit string)
	Now    func() int64 // milliseconds since 1970
}

// The bounds of a connection and of an email.
const (
	maxRecipients = 100
	maxTexts      = 10 << 20 // of all emails that are on their way, in octets
	maxLine       = 12 << 10 // of a command: RFC 4954 allows an AUTH of 12,288 octets
)

// times are constants of the product, which tests change.
type times struct {
	SignIn  time.Duration // from the connection to AUTH
	Idle    time.Duration // between commands: RFC 5321, 4.5.3.2.7
	Write   time.Duration // of a reply
	Arrival time.Duration // from the first recipient to the final dot
	Begin   time.Duration // from there to the text at the relay
	Answer  time.Duration // and to the relay's answer
}

var standard = times{30 * time.Second, 5 * time.Minute, 10 * time.Second, 15 * time.Second, 8 * time.Second, 15 * time.Second}

// Server takes email by SMTP. Its methods may be called from any goroutine.
type Server struct {
	Options
	times    times
	texts    atomic.Int64 // octets of the texts in memory
	life     context.Context
	end      context.CancelFunc
	draining atomic.Bool

	mu        sync.Mutex
	listeners []net.Listener
	conns     shares
	serving   sync.WaitGroup // connections
}

// New makes a Server.
func New(o Options) *Server {
	s := &Server{Options: o, times: standard, conns: newShares(o.MaxConnections)}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Serve takes connections from a listener until Shutdown. Those of a private listener need no TLS to sign
// in; those of an implicit one speak TLS from their first octet.
func (s *Server) Serve(l net.Listener, private, implicit bool) error {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	if s.draining.Load() {
		return l.Close()
	}
	for pause := 5 * time.Millisecond; ; {
		socket, err := l.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			s.take(socket, private, implicit)
		case s.draining.Load() || errors.Is(err, net.ErrClosed):
			return nil
		default: // such as a shortage of files
			s.Log.Warn("no connection can be accepted", "door", door, "cause", err.Error(), "again_in", pause)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
		}
	}
}

// take begins a connection, or refuses it if there are too many.
func (s *Server) take(socket net.Conn, private, implicit bool) {
	c := newConn(socket, s)
	if !s.enter(c) {
		_ = socket.SetDeadline(time.Now().Add(time.Second))
		if !implicit {
			fmt.Fprintf(socket, "421 4.3.2 %s too many connections\r\n", s.Domain)
		}
		_ = socket.Close()
		return
	}
	// A server of its own: what it announces and allows can change with the state of a connection.
	server := smtp.NewServer(smtp.BackendFunc(func(client *smtp.Conn) (smtp.Session, error) {
		_, encrypted := client.TLSConnectionState()
		return &session{server: s, conn: c, client: client, encrypted: encrypted, trusted: private || encrypted}, nil
	}))
	server.Domain, server.TLSConfig, server.AllowInsecureAuth = s.Domain, s.TLS, private
	server.MaxRecipients, server.MaxMessageBytes, server.MaxLineLength = maxRecipients, int64(s.MaxBytes), maxLine
	server.ReadTimeout, server.WriteTimeout = s.times.Idle, s.times.Write
	server.Debug = &c.dots
	server.ErrorLog = log.New(io.Discard, "", 0) // its lines have addresses of clients
	var stream net.Conn = c
	if implicit {
		stream = tls.Server(c, s.TLS)
	}
	_ = server.Serve(&once{conn: stream}) // which ends with the first Accept after this one
}

// once is a listener of one connection.
type once struct {
	net.Listener
	conn net.Conn
}

func (o *once) Accept() (net.Conn, error) {
	c := o.conn
	if o.conn = nil; c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Shutdown takes no more connections and ends those that hand no email over, with 421 and a refund of what
// their recipients were charged. It waits for the others until ctx ends, and then cuts them off.
func (s *Server) Shutdown(ctx context.Context) (err error) {
	s.draining.Store(true)
	s.mu.Lock()
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	s.listeners = nil
	s.conns.stopping = true
	for c := range s.conns.all {
		c.stop(false)
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.end()
	s.mu.Lock()
	for c := range s.conns.all {
		c.stop(true)
	}
	s.mu.Unlock()
	if err != nil {
		select {
		case <-ended:
		case <-time.After(time.Second): // for refunds
		}
	}
	return err
}
