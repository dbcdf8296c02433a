package submission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/mailer/address"
)

// noLimit is for a client that may take any time.
var noLimit time.Time

// session is what a client has said on its connection. It is used by the goroutine of that alone.
type session struct {
	server    *Server
	conn      *conn
	encrypted bool
	trusted   bool   // may sign in: encrypted, or from this machine
	hello     string // how the client names itself; "" before EHLO
	failures  int    // wrong keys
	errors    int    // unknown commands

	id    string // of the email, for its reply and the log
	began time.Time
	from  address.Address
	mail  *delivery.Attempt // nil: none is open
	life  context.Context   // of the email; carries its span
	end   context.CancelFunc
	held  int64 // octets of Server.texts
}

// serve answers one command after the other until the connection ends.
func (s *session) serve(implicit bool) {
	defer s.server.leave(s.conn)
	defer func() {
		if value := recover(); value != nil {
			err, _ := errors.AsType[recovered.Error](recovered.From(value))
			s.server.Log.Error("submission", "door", ledger.SMTP, "cause", err.Error(), "stack", err.Stack)
			s.conn.say(&reply{421, "4.3.0", "internal error; the connection is closed"})
		}
		s.abandon(nil, nil)
		_ = s.conn.Close() // it is of no use any more
	}()
	if implicit && !s.encrypt() {
		return
	}
	for answer := (&reply{220, "", s.server.Domain + " ESMTP"}); ; {
		s.conn.say(answer)
		if answer.ends() || answer == readyForTLS && !s.encrypt() {
			return
		}
		line, ended := s.conn.line()
		if answer = ended; ended == nil {
			answer = s.answer(line)
		}
	}
}

// encrypt speaks TLS from here on, and reports whether the client does, too. What was said in the clear is forgotten,
// and what else has come is dropped.
func (s *session) encrypt() bool {
	s.conn.flush()
	s.abandon(nil, nil)
	s.server.signOut(s.conn)
	*s = session{server: s.server, conn: s.conn, encrypted: true, trusted: true, failures: s.failures, errors: s.errors}
	encrypted := tls.Server(s.conn.socket, s.server.TLS)
	s.conn.Conn, s.conn.until = encrypted, time.Now().Add(s.server.times.SignIn)
	s.conn.in.Reset(s.conn)
	s.conn.await(s.conn.until)
	return encrypted.Handshake() == nil
}

// maxErrors are the unknown commands that are answered. A browser sends more.
const maxErrors = 3

// answer does what a command says.
func (s *session) answer(line string) *reply {
	verb, argument, _ := strings.Cut(line, " ")
	verb, argument = strings.ToUpper(verb), strings.TrimSpace(argument)
	if s.hello == "" && slices.Contains([]string{"STARTTLS", "AUTH", "MAIL", "RCPT", "DATA"}, verb) {
		return &reply{503, "5.5.1", "say EHLO first"}
	}
	switch verb {
	case "EHLO", "HELO":
		return s.greet(verb, argument)
	case "STARTTLS":
		switch {
		case argument != "":
			return badArgument
		case s.encrypted:
			return wrongOrder
		case s.server.TLS == nil:
			return notOffered
		}
		return readyForTLS
	case "AUTH":
		return s.auth(argument)
	case "MAIL":
		return s.mailFrom(argument)
	case "RCPT":
		return s.rcptTo(argument)
	case "DATA":
		return s.data(argument)
	case "RSET":
		s.abandon(nil, nil)
		return done
	case "NOOP":
		return done
	case "VRFY":
		return &reply{252, "2.5.0", "recipients are checked at RCPT"}
	case "QUIT":
		return &reply{221, "2.0.0", "bye"}
	case "HELP", "EXPN":
		return notOffered
	case "BDAT": // is not offered, and nothing in its chunk is a command
		size, _, _ := strings.Cut(argument, " ")
		n, err := strconv.ParseUint(size, 10, 32)
		if err != nil {
			return &reply{421, "4.7.0", "how long the chunk is cannot be read; the connection is closed"}
		}
		if _, err := io.CopyN(io.Discard, s.conn.in, int64(n)); err != nil {
			return s.conn.last(err)
		}
		return notOffered
	}
	if s.errors++; s.errors <= maxErrors {
		return unknown
	}
	return s.lastly(unknown, "too many unknown commands")
}

// lastly gives an answer, and returns the one that ends the connection.
func (s *session) lastly(answer *reply, why string) *reply {
	s.conn.say(answer)
	return &reply{421, "4.7.0", why + "; the connection is closed"}
}

// greet begins anew, and says what is offered.
func (s *session) greet(verb, name string) *reply {
	if name == "" {
		return badArgument
	}
	s.abandon(nil, nil)
	s.hello = name
	if verb == "HELO" {
		return &reply{250, "", s.server.Domain}
	}
	offers := []string{s.server.Domain, "PIPELINING", "8BITMIME", "ENHANCEDSTATUSCODES"}
	if s.server.TLS != nil && !s.encrypted {
		offers = append(offers, "STARTTLS")
	}
	if s.trusted && !s.server.Keys.IsZero() {
		offers = append(offers, "AUTH PLAIN LOGIN")
	}
	for _, one := range offers {
		s.conn.out = fmt.Appendf(s.conn.out, "250-%s\r\n", one)
	}
	return &reply{250, "", "SIZE " + strconv.Itoa(s.server.MaxBytes)}
}
