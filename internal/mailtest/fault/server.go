package fault

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Server is a running relay. Its methods may be used from any goroutine.
type Server struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	script   Script
	seen     int // how often the script's step was reached
	sessions []*session
	open     int
	mails    []Mail
	closed   bool
}

// Mail is one that arrived whole, up to its final dot, whatever was answered.
type Mail struct {
	From, To   string
	Text       []byte // as sent, dots still stuffed, final dot left out
	ReceivedMS int64  // when, in Unix milliseconds
	// Refused says that the answer to the final dot was a 4xx or 5xx, so that the
	// relay is not the one to deliver it.
	Refused bool
}

// Start listens on a free loopback port until Close.
func Start(script Script) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fault: listen: %w", err)
	}
	s := &Server{listener: listener}
	s.Play(script)
	s.running.Add(1)
	go s.accept()
	return s, nil
}

// Run starts a server that ends with the test.
func Run(t testing.TB, script Script) *Server {
	t.Helper()
	s, err := Start(script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Play changes the script, for what happens from now on.
func (s *Server) Play(script Script) {
	script.DripEvery = cmp.Or(script.DripEvery, 50*time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.seen = script, 0
}

// Addr returns the host and port it listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns what mailgate is configured with to hand email to it.
func (s *Server) URL() string { return "smtp://" + s.Addr() + "?tls=none" }

// Mails returns those that arrived whole, in order.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// Open returns the number of connections now, without those that are being turned away.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Collect returns what Mails does, and forgets the emails and what ended connections were sent. A
// test that runs for hours calls it now and then.
func (s *Server) Collect() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	mails := s.mails
	s.mails = nil
	s.sessions = slices.DeleteFunc(s.sessions, func(one *session) bool { return one.ended })
	for _, one := range s.sessions {
		one.received = nil
	}
	return mails
}

// Received returns what each connection ever was sent, in order of arrival; under TLS what was
// in it.
func (s *Server) Received() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	received := make([][]byte, len(s.sessions))
	for i, session := range s.sessions {
		received[i] = bytes.Clone(session.received)
	}
	return received
}

// Cut ends every connection, and with it whatever Silence there was.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.socket.Close()
	}
}

// Close ends every connection and returns when all is over.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Cut()
	err := s.listener.Close()
	s.running.Wait()
	return err
}

func (s *Server) accept() {
	defer s.running.Done()
	for {
		socket, err := s.listener.Accept()
		if err != nil {
			return
		}
		// Little room, so that a relay that does not read is soon noticed.
		_ = socket.(*net.TCPConn).SetReadBuffer(32 << 10)
		session := &session{server: s, socket: socket, stream: socket}
		if s.enter(session) {
			go s.serve(session)
		}
	}
}

func (s *Server) enter(session *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		session.socket.Close()
		return false
	}
	session.turned = s.script.MostConns > 0 && s.open >= s.script.MostConns
	session.late = s.script.MostSending > 0 && s.open >= s.script.MostSending
	s.sessions = append(s.sessions, session)
	if !session.turned {
		s.open++
	}
	s.running.Add(1)
	return true
}

func (s *Server) serve(session *session) {
	defer s.running.Done()
	session.converse()
	s.mu.Lock()
	if !session.turned {
		s.open--
	}
	session.ended = true
	s.mu.Unlock()
	session.socket.Close()
}

// due says what goes wrong at this step, this time.
func (s *Server) due(step Step) (Kind, Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step != s.script.At {
		return None, s.script
	}
	s.seen++
	n := s.seen - s.script.After
	if n < 1 || (s.script.Times > 0 && n > s.script.Times) {
		return None, s.script
	}
	return s.script.Kind, s.script
}

func (s *Server) deliver(mail Mail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, mail)
}
