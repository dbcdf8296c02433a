package submission

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/throttle"
)

// Options are what a Server works with. All are required, but for TLS.
type Options struct {
	Delivery  *delivery.Service
	Ledger    *ledger.Ledger
	Identity  address.Identity
	Keys      apikey.Keys           // sign clients in; without any, clients on this machine need none
	WrongKeys *throttle.Limiter     // the wrong passwords of each network.KeyOf
	Repeats   *idempotency.Requests // know the emails that were sent, so that none is sent again
	Senders   Senders               // that email may be from
	Proofs    *proof.Proofs         // are added to the emails
	Defer     []string              // names of keys whose emails may come late: a limit defers them instead of refusing them
	Domain    string                // how the server names itself
	MaxBytes  int                   // of one email
	TLS       *tls.Config           // offered by STARTTLS

	MaxConnections int

	Log    *slog.Logger
	Tracer *trace.Tracer // of emails; nil for none
	Now    func() int64  // milliseconds since 1970
}

// The bounds of a connection and of an email.
const (
	maxRecipients = 100
	maxLine       = 12 << 10 // of a command: RFC 4954 allows an AUTH of 12,288 octets
)

// times, and the memory for texts, are constants of the product, which tests change.
type times struct {
	SignIn  time.Duration // from the connection to AUTH
	Idle    time.Duration // between commands: RFC 5321, 4.5.3.2.7
	Write   time.Duration // of a reply
	Arrival time.Duration // from the first recipient to the final dot
	Begin   time.Duration // from there to the text at the relay
	Answer  time.Duration // and to the relay's answer

	Texts int64 // octets of all emails that are on their way
}

var standard = times{30 * time.Second, 5 * time.Minute, 10 * time.Second, 15 * time.Second, 8 * time.Second, 15 * time.Second, 10 << 20}

// Server takes email by SMTP. Its methods may be called from any goroutine.
type Server struct {
	Options
	times times
	texts atomic.Int64 // octets of the texts in memory
	life  context.Context
	end   context.CancelFunc

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[*conn]bool // open
	ended     bool
	serving   sync.WaitGroup // connections
}

// New makes a Server.
func New(o Options) *Server {
	s := &Server{Options: o, times: standard, conns: map[*conn]bool{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Serve takes connections from a listener until Shutdown. Those of a private listener need no TLS to sign
// in; those of an implicit one speak TLS from their first octet.
func (s *Server) Serve(l net.Listener, private, implicit bool) error {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	ended := s.ended
	s.mu.Unlock()
	if ended {
		return l.Close()
	}
	for pause := time.Duration(0); ; {
		socket, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.take(socket, private, implicit)
		case errors.Is(err, net.ErrClosed):
			return nil
		default: // such as a shortage of files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.Log.Warn("no connection can be accepted", "door", ledger.SMTP, "cause", err.Error(), "again_in", pause)
			time.Sleep(pause)
		}
	}
}

// take begins a connection, or refuses it if there are too many.
func (s *Server) take(socket net.Conn, private, implicit bool) {
	c := &conn{Conn: socket, socket: socket, times: &s.times, until: time.Now().Add(s.times.SignIn)}
	c.in = bufio.NewReader(c)
	if at, ok := socket.RemoteAddr().(*net.TCPAddr); ok {
		c.from = at.AddrPort().Addr().Unmap()
	}
	if s.enter(c) {
		go (&session{server: s, conn: c, trusted: private}).serve(implicit)
		return
	}
	if !implicit {
		c.say(crowded)
	}
	_ = socket.Close()
}

// Shutdown takes no more connections and ends those that hand no email over, with 421 and a refund of what
// their recipients were charged. It waits for the others until ctx ends, and then cuts them off.
func (s *Server) Shutdown(ctx context.Context) (err error) {
	defer s.end()
	s.mu.Lock()
	s.ended = true
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	s.listeners = nil
	for c := range s.conns {
		c.stop(stopping)
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
	}
	s.end()
	select {
	case <-ended:
	case <-time.After(time.Second): // for refunds
	}
	return ctx.Err()
}
