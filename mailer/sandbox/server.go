// Package sandbox is a mail relay for trials on the loopback interface. It delivers nothing
// and keeps the last emails in memory, to be listed, fetched and waited for.
//
// "mailgate dev" sends to it, and so do tests that need a relay. It speaks SMTP by
// github.com/emersion/go-smtp, so a client that works against it has really spoken SMTP. It
// has neither TLS nor passwords and listens on loopback only.
package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/emersion/go-smtp"
)

// Options bound what a Server keeps. Zero fields mean 200 emails and 32 MiB.
type Options struct {
	KeepMessages int
	KeepBytes    int
}

// mostBytes bounds one email. It is announced as SIZE.
const mostBytes = 1 << 20

// Server is a running sandbox, with the methods of its inbox. They may be used from any goroutine.
type Server struct {
	*inbox
	listener net.Listener
	smtp     *smtp.Server
}

// Start listens on a free loopback port and serves until Close.
func Start(o Options) (s *Server, err error) {
	s = &Server{inbox: &inbox{maxCount: cmp.Or(o.KeepMessages, 200), maxBytes: cmp.Or(o.KeepBytes, 32<<20)}}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("sandbox: listen: %w", err)
	}
	s.smtp = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{inbox: s.inbox}, nil }))
	s.smtp.Domain = "sandbox.localhost"
	s.smtp.MaxMessageBytes, s.smtp.MaxRecipients = mostBytes, 100
	s.smtp.ReadTimeout, s.smtp.WriteTimeout = 5*time.Minute, 5*time.Minute
	s.smtp.ErrorLog = log.New(io.Discard, "", 0) // lost connections are everyday
	go func() { _ = s.smtp.Serve(s.listener) }() // ends with Close
	return s, nil
}

// Addr returns the host and port it listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the relay URL for a client.
func (s *Server) URL() string { return "smtp://" + s.Addr() + "?tls=none" }

// Close stops listening and cuts what is connected. The emails can still be read.
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
	inbox *inbox
	mail  envelope
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

// Data keeps an email. It refuses a CR or LF on its own, which no client may send.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	lines := bytes.ReplaceAll(raw, []byte("\r\n"), nil)
	if bytes.ContainsAny(lines, "\r\n") {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "bare CR or LF in the email"}
	}
	s.mail.raw, s.mail.receivedMS = raw, time.Now().UnixMilli()
	s.inbox.add(s.mail)
	return nil
}
