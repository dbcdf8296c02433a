package mailtest

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

// Options are what a test may want to be different. Zero fields mean what is
// named here.
type Options struct {
	// LoginOnly leaves AUTH LOGIN as the one way to say the password. AUTH PLAIN, too.
	LoginOnly bool
	// Refuse is what the server refuses. Nothing.
	Refuse []Refusal
}

// Refusal makes the server refuse a domain at one step.
type Refusal struct {
	// At is "MAIL", where the domain is the sender's, "RCPT", or "DATA" for a
	// refusal after the mail's final dot; there it is a recipient's.
	At string
	// Domain in lower-case letters.
	Domain string
	// Reply is code, enhanced code and plain words: "550 5.1.1 No such mailbox".
	// One that begins with 4 is for now, one with 5 for good.
	Reply string
}

// Server is one Exim.
type Server struct {
	Addr           string // host:port; TLS by STARTTLS
	SecureAddr     string // host:port; TLS from the first octet
	User, Password string // that it asks for before it takes mail; with marks that URLs must encode
	CA             string // file with the certificate of who vouches for the server's

	dir     string
	options Options
	process *process
}

// Start starts a server and returns when it answers.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	program := need.Program(t, "exim4")
	s := &Server{User: "mailgate", Password: "p@ss: /wörd?%", options: options}
	as := ownAccount()
	s.makeDir(t)
	port, securePort := servertest.Port(t), servertest.Port(t)
	s.Addr, s.SecureAddr = fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", securePort)
	s.writeCertificates(t)
	if err := s.furnish(program, as, port, securePort); err != nil {
		t.Fatalf("cannot prepare a mail server: %v", err)
	}
	s.launch(t, as)
	s.awaitBanner(t)
	return s
}

// TakeToken has the server take this token, of OAuth 2 by AUTH XOAUTH2, from then on, and
// no other. Before it does not offer that.
func (s *Server) TakeToken(t testing.TB, token string) {
	t.Helper()
	both := base64.StdEncoding.EncodeToString([]byte("user=" + s.User + "\x01auth=Bearer " + token + "\x01\x01"))
	path := filepath.Join(s.dir, "token")
	if err := errors.Join(os.WriteFile(path+".new", []byte(both), 0o644), os.Rename(path+".new", path)); err != nil {
		t.Fatalf("cannot tell a mail server a token: %v", err)
	}
}

// furnish puts everything into the directory that the server needs there.
func (s *Server) furnish(program string, as account, port, securePort int) error {
	if err := copyProgram(program, filepath.Join(s.dir, "exim")); err != nil {
		return err
	}
	text, err := s.config(as, port, securePort)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "exim.conf"), text, 0o600); err != nil {
		return err
	}
	return as.own(s.dir, "", "exim", "exim.conf", "server.pem", "server.key", "spool", "log", "box")
}

// makeDir makes the server's directory and sees to its end. It is none of the
// test's own: those lie where only the user of the test may go, and that may
// not be the server's.
func (s *Server) makeDir(t testing.TB) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mailtest-")
	if err != nil {
		t.Fatalf("cannot make a directory for a mail server: %v", err)
	}
	s.dir, s.CA = dir, filepath.Join(dir, "ca.pem")
	t.Cleanup(func() {
		if s.process != nil {
			s.process.kill()
		}
		// A killed process may still be at the end of a write.
		servertest.Await(t, "the mail server's directory to be removed", endLimit, func() error { return os.RemoveAll(dir) })
	})
	for _, name := range []string{"spool", "log", "box"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatalf("cannot make a directory for a mail server: %v", err)
		}
	}
}

// copyProgram leaves the set-user-ID bit behind. With it, the server would be
// free of the test's user, and of ending with the test.
func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (s *Server) launch(t testing.TB, as account) {
	t.Helper()
	words, err := os.Create(filepath.Join(s.dir, "words"))
	if err != nil {
		t.Fatalf("cannot open a file for what a mail server says: %v", err)
	}
	defer words.Close() // the child has its own by then
	cmd := exec.Command(filepath.Join(s.dir, "exim"), "-C", filepath.Join(s.dir, "exim.conf"), "-bdf")
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = words, words
	cmd.SysProcAttr = as.attributes()
	if s.process, err = startProcess(cmd); err != nil {
		t.Fatalf("cannot start exim4: %v", err)
	}
}

const (
	startLimit = 20 * time.Second // loaded machines start slowly
	endLimit   = 10 * time.Second
)

func (s *Server) awaitBanner(t testing.TB) {
	t.Helper()
	servertest.Await(t, "the mail server to answer", startLimit, func() error {
		if s.process.ended() {
			t.Fatalf("exim4 ended at its start; it says:\n%s", s.lastWords())
		}
		return greets(s.Addr)
	})
}

func greets(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startLimit)); err != nil {
		return err
	}
	banner, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(banner, "220 ") {
		err = fmt.Errorf("it says %q", strings.TrimSpace(banner))
	}
	_, _ = io.WriteString(conn, "QUIT\r\n") // or the log would tell of a lost connection
	return err
}

// STARTTLS is the URL of a relay that is spoken to in the clear first.
func (s *Server) STARTTLS() string { return s.address("smtp", s.Addr) }

// SMTPS is the URL of a relay with TLS from the first octet.
func (s *Server) SMTPS() string { return s.address("smtps", s.SecureAddr) }

func (s *Server) address(scheme, addr string) string {
	u := url.URL{
		Scheme: scheme, Host: addr, User: url.UserPassword(s.User, s.Password),
		RawQuery: url.Values{"ca": {s.CA}}.Encode(),
	}
	return u.String()
}

// Log is what the server has written into its log so far.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log", "mainlog"))
	if err != nil {
		return ""
	}
	return string(text)
}

// lastWords is the end of all that the server said.
func (s *Server) lastWords() string {
	var all strings.Builder
	for _, name := range []string{"words", "log/paniclog", "log/mainlog"} {
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err == nil {
			all.Write(text[max(0, len(text)-1000):])
		}
	}
	return all.String()
}
