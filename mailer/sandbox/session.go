package sandbox

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// session is one connection's conversation.
type session struct {
	server *Server
	conn   net.Conn
	in     *bufio.Reader
	out    *bufio.Writer

	greeted, authorized, secure bool

	opened bool // MAIL was accepted
	from   string
	to     []string
}

// mostRecipients is what RFC 5321 asks every server to take at least.
const mostRecipients = 100

var (
	errQuit        = errors.New("client said QUIT")
	errLineTooLong = errors.New("command line too long")
)

func newSession(server *Server, conn net.Conn) *session {
	s := &session{server: server, authorized: server.options.User == ""}
	s.use(conn)
	return s
}

// use starts reading and writing on conn, forgetting what was buffered.
func (s *session) use(conn net.Conn) {
	s.conn = conn
	s.out = bufio.NewWriter(conn)
	s.in = bufio.NewReader(awaited{s})
}

// awaited reads the connection for a session. Replies are flushed only when
// the session is about to wait, so the answers to a group of pipelined
// commands leave in one piece.
type awaited struct{ s *session }

func (a awaited) Read(p []byte) (int, error) {
	if err := a.s.out.Flush(); err != nil {
		return 0, err
	}
	if err := a.s.conn.SetDeadline(time.Now().Add(a.s.server.options.IdleTimeout)); err != nil {
		return 0, err
	}
	return a.s.conn.Read(p)
}

// converse runs until the client has gone or went too far.
func (s *session) converse() error {
	s.say("220 sandbox.localhost ESMTP: mail stays here")
	for {
		line, err := s.line()
		if err == nil {
			verb, rest, _ := bytes.Cut(line, []byte(" "))
			err = s.handle(strings.ToUpper(string(verb)), string(rest))
		}
		if err == nil {
			continue
		}
		if errors.Is(err, errLineTooLong) {
			s.say("500 5.5.2 line too long")
		}
		flushed := s.out.Flush()
		if errors.Is(err, errQuit) {
			return flushed
		}
		return err
	}
}

// line reads one command line without its end. It is valid until the next.
func (s *session) line() ([]byte, error) {
	line, err := s.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errLineTooLong
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func (s *session) say(line string) {
	// A failed write surfaces at the flush before the next read.
	s.out.WriteString(line)
	s.out.WriteString("\r\n")
}

func (s *session) handle(verb, rest string) error {
	switch verb {
	case "EHLO":
		s.hello(rest)
	case "HELO":
		s.greeted = true
		s.forget()
		s.say("250 sandbox.localhost")
	case "STARTTLS":
		return s.upgrade()
	case "AUTH":
		return s.authenticate(rest)
	case "MAIL":
		s.mail(rest)
	case "RCPT":
		s.rcpt(rest)
	case "DATA":
		return s.data()
	case "RSET":
		s.forget()
		s.say("250 2.0.0 flushed")
	case "NOOP":
		s.say("250 2.0.0 ok")
	case "QUIT":
		s.say("221 2.0.0 bye")
		return errQuit
	default:
		s.say("500 5.5.2 command not recognized")
	}
	return nil
}

func (s *session) forget() {
	s.opened, s.from, s.to = false, "", nil
}

func (s *session) hello(name string) {
	if strings.TrimSpace(name) == "" {
		s.say("501 5.5.4 EHLO needs a name")
		return
	}
	s.greeted = true
	s.forget()
	o := s.server.options
	s.say("250-sandbox.localhost")
	s.say("250-PIPELINING")
	s.say("250-8BITMIME")
	if o.TLS != nil && !s.secure {
		s.say("250-STARTTLS")
	}
	if o.User != "" && s.secure {
		s.say("250-AUTH PLAIN LOGIN")
	}
	s.say("250-SIZE " + strconv.Itoa(o.MaxMessageBytes))
	s.say("250 ENHANCEDSTATUSCODES")
}

// upgrade answers STARTTLS. Anything the client sent ahead in clear text
// would be read as if it had come under TLS, so that ends the connection.
func (s *session) upgrade() error {
	if s.server.options.TLS == nil || s.secure {
		s.say("503 5.5.1 no TLS here")
		return nil
	}
	s.say("220 2.0.0 go ahead")
	if err := s.out.Flush(); err != nil {
		return err
	}
	if s.in.Buffered() > 0 {
		return errors.New("clear text after STARTTLS")
	}
	s.greeted = false
	s.forget()
	return s.startTLS()
}

func (s *session) startTLS() error {
	conn := tls.Server(s.conn, s.server.options.TLS)
	if err := conn.SetDeadline(time.Now().Add(s.server.options.IdleTimeout)); err != nil {
		return err
	}
	if err := conn.Handshake(); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	s.secure = true
	s.use(conn)
	return nil
}

func (s *session) mail(rest string) {
	from, params, ok := path(rest, "FROM:")
	switch {
	case !s.greeted:
		s.say("503 5.5.1 say EHLO first")
	case !s.authorized:
		s.say("530 5.7.0 authentication required")
	case s.opened:
		s.say("503 5.5.1 a mail is open already")
	case !ok:
		s.say("501 5.5.4 MAIL FROM:<address> expected")
	case s.tooBig(params):
		s.say("552 5.3.4 mail too big")
	default:
		s.opened, s.from = true, from
		s.say("250 2.1.0 ok")
	}
}

func (s *session) tooBig(params string) bool {
	for param := range strings.FieldsSeq(params) {
		key, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(key, "SIZE") {
			size, err := strconv.Atoi(value)
			return err != nil || size > s.server.options.MaxMessageBytes
		}
	}
	return false
}

func (s *session) rcpt(rest string) {
	to, _, ok := path(rest, "TO:")
	switch {
	case !s.opened:
		s.say("503 5.5.1 say MAIL first")
	case !ok || to == "":
		s.say("501 5.1.3 RCPT TO:<address> expected")
	case len(s.to) == mostRecipients:
		s.say("452 4.5.3 too many recipients")
	default:
		s.to = append(s.to, to)
		s.say("250 2.1.5 ok")
	}
}

// path takes "FROM:<address> params" apart.
func path(rest, keyword string) (address, params string, ok bool) {
	if len(rest) < len(keyword) || !strings.EqualFold(rest[:len(keyword)], keyword) {
		return "", "", false
	}
	rest = strings.TrimLeft(rest[len(keyword):], " ")
	if !strings.HasPrefix(rest, "<") {
		return "", "", false
	}
	address, params, ok = strings.Cut(rest[1:], ">")
	return strings.Clone(address), params, ok
}

func (s *session) data() error {
	if len(s.to) == 0 {
		s.say("503 5.5.1 no valid recipient")
		return nil
	}
	s.say("354 end with a dot on a line of its own")
	raw, err := readContent(s.in, s.server.options.MaxMessageBytes)
	switch {
	case errors.Is(err, errTooBig):
		s.say("552 5.3.4 mail too big")
	case errors.Is(err, errBareLineEnd):
		s.say("554 5.6.0 bare CR or LF in mail")
	case err != nil:
		return err
	default:
		id := s.server.inbox.add(envelope{from: s.from, to: s.to, receivedMS: s.server.options.Now(), raw: raw})
		s.say("250 2.0.0 kept as " + strconv.FormatUint(id, 10))
	}
	s.forget()
	return nil
}
