// Package sandbox is a mail relay for trials on the loopback interface. It delivers nothing
// and keeps the last mails in memory, to be listed, fetched and waited for.
//
// "mailgate dev" sends to it, and so do tests that need a relay. It speaks SMTP by
// github.com/emersion/go-smtp, so a client that works against it has really spoken SMTP. It
// has neither TLS nor passwords and listens on loopback only.
package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/emersion/go-smtp"
)

// Options say how a Server behaves. The zero value listens on a free port and keeps 200
// mails or 32 MiB, whichever is reached first.
type Options struct {
	// Listen is a loopback address such as "127.0.0.1:0", the default.
	Listen string
	// KeepMessages and KeepBytes bound what is kept.
	KeepMessages int
	KeepBytes    int
	// Now is the clock, in Unix milliseconds. The system's if nil.
	Now func() int64
}

// mostBytes bounds one mail. It is announced as SIZE.
const mostBytes = 1 << 20

// Server is a running sandbox. Its methods may be used from any goroutine.
type Server struct {
	listener net.Listener
	smtp     *smtp.Server
	inbox    *inbox
	now      func() int64
}

// Start listens and serves until Close.
func Start(o Options) (*Server, error) {
	listen := cmp.Or(o.Listen, "127.0.0.1:0")
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("sandbox: listen address: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("sandbox: listens on a loopback address only")
	}
	s := &Server{now: o.Now, inbox: newInbox(cmp.Or(o.KeepMessages, 200), cmp.Or(o.KeepBytes, 32<<20))}
	if s.now == nil {
		s.now = func() int64 { return time.Now().UnixMilli() }
	}
	if s.listener, err = net.Listen("tcp", listen); err != nil {
		return nil, fmt.Errorf("sandbox: listen: %w", err)
	}
	s.smtp = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }))
	s.smtp.Domain = "sandbox.localhost"
	s.smtp.MaxMessageBytes, s.smtp.MaxRecipients = mostBytes, 100
	s.smtp.ReadTimeout, s.smtp.WriteTimeout = 5*time.Minute, 5*time.Minute
	s.smtp.ErrorLog = log.New(io.Discard, "", 0) // lost connections are everyday
	go func() { _ = s.smtp.Serve(s.listener) }() // ends with Close
	return s, nil
}

// Addr is the host and port it listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is the relay URL for a client.
func (s *Server) URL() string { return "smtp://" + s.Addr() + "?tls=none" }

// Close stops listening and cuts what is connected. The mails can still be read.
func (s *Server) Close() error {
	err := s.smtp.Close()
	if errors.Is(err, smtp.ErrServerClosed) {
		return nil
	}
	_ = s.listener.Close() // where Serve had not taken it up yet
	return err
}

// session is one connection's conversation.
type session struct {
	server *Server
	mail   envelope
}

func (s *session) Reset()        { s.mail = envelope{} }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mail.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = append(s.mail.to, to)
	return nil
}

// Data keeps a mail. It refuses a CR or LF on its own, which no client may send.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	lines := bytes.ReplaceAll(raw, []byte("\r\n"), nil)
	if bytes.ContainsAny(lines, "\r\n") {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "bare CR or LF in the email"}
	}
	s.mail.raw, s.mail.receivedMS = raw, s.server.now()
	s.server.inbox.add(s.mail)
	return nil
}

// List returns what is kept, oldest first.
func (s *Server) List() []Message { return s.inbox.list() }

// Get returns the mail with this id, if it is still kept.
func (s *Server) Get(id uint64) (Message, bool) { return s.inbox.get(id) }

// Clear forgets every mail. Ids continue to count.
func (s *Server) Clear() { s.inbox.clear() }

// Wait returns the newest mail to this envelope recipient, or waits for one until ctx ends.
// Letter case does not matter.
func (s *Server) Wait(ctx context.Context, to string) (Message, error) {
	return s.WaitAfter(ctx, to, 0)
}

// WaitAfter is Wait for a mail whose id is greater than after. An empty recipient stands for
// any.
func (s *Server) WaitAfter(ctx context.Context, to string, after uint64) (Message, error) {
	m, err := s.inbox.wait(ctx, to, after)
	if err != nil {
		return Message{}, fmt.Errorf("sandbox: wait for email: %w", err)
	}
	return m, nil
}
