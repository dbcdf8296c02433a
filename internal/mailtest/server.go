// Package mailtest gives tests a real mail server: Exim, as Debian ships it, with TLS,
// passwords and a mailbox that the test can read.
//
//	server := mailtest.Start(t, mailtest.Options{})
//	relays := connect(server.STARTTLS()) // or server.SMTPS()
//	…
//	mails := server.Mails(t)
//
// The server takes email from clients that know its password, to any address, and delivers
// all of it into one mailbox. Nothing it does leaves the machine. It listens on free ports of
// 127.0.0.1 and ends with the test, even one that is killed. Without the program the test is
// skipped, as package need says.
//
// [StartTokens] is the server that gives the tokens of OAuth 2 which [Server.TakeToken] has
// it take in place of the password.
package mailtest

import (
	"bytes"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

// Options are what a test may want to be different.
type Options struct {
	// LoginOnly offers AUTH LOGIN without AUTH PLAIN.
	LoginOnly bool
	// Refuse is what the server refuses.
	Refuse []Refusal
	// SmartHost is the server, with user and password, that gets all email but that to acme.example,
	// such as bounces.
	SmartHost *url.URL
}

// Refusal makes the server refuse a domain at one step.
type Refusal struct {
	// At is "MAIL", where the domain is the sender's, "RCPT", or "DATA" for a refusal after
	// the email's final dot; there it is a recipient's.
	At string
	// Domain in lower-case letters.
	Domain string
	// Reply is code, enhanced code and plain words: "550 5.1.1 No such mailbox".
	Reply string
}

// Verb returns what Exim calls it.
func (r Refusal) Verb() string {
	if strings.HasPrefix(r.Reply, "4") {
		return "defer"
	}
	return "deny"
}

// Server is one Exim.
type Server struct {
	Addr           string // host:port; TLS by STARTTLS
	SecureAddr     string // host:port; TLS from the first octet
	User, Password string // that it asks for before it takes email; with marks that URLs must encode
	CA             string // file with the certificate of the server's authority

	dir   string
	ended <-chan struct{} // closed when the process has ended
}

const (
	startLimit = 20 * time.Second // loaded machines start and deliver slowly
	endLimit   = 10 * time.Second
)

// Start starts a server and returns when it answers.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	program := need.Program(t, "exim4")
	// None of the test's own directories: those lie where only the user of the test may go,
	// and that may not be the server's.
	dir, err := os.MkdirTemp("", "mailtest-")
	if err != nil {
		t.Fatalf("cannot make a directory for a mail server: %v", err)
	}
	// A killed process may still be at the end of a write.
	t.Cleanup(func() {
		servertest.Await(t, "the mail server's directory to be removed", endLimit, func() error { return os.RemoveAll(dir) })
	})
	port, securePort := servertest.Port(t), servertest.Port(t)
	s := &Server{
		Addr: fmt.Sprintf("127.0.0.1:%d", port), SecureAddr: fmt.Sprintf("127.0.0.1:%d", securePort),
		User: "mailgate", Password: "p@ss: /wörd?%",
		CA: filepath.Join(dir, "ca.pem"), dir: dir,
	}
	if err := s.prepare(t, program, options, port, securePort); err != nil {
		t.Fatalf("cannot prepare a mail server: %v", err)
	}
	s.launch(t)
	servertest.Await(t, "the mail server to answer", startLimit, func() error {
		select {
		case <-s.ended:
			t.Fatalf("exim4 ended at its start; it says:\n%s", s.lastWords())
		default:
		}
		return greets(s.Addr)
	})
	return s
}

//go:embed exim.conf
var eximConf string

// prepare writes all files that the server needs.
func (s *Server) prepare(t testing.TB, program string, options Options, port, securePort int) error {
	uid, gid := account()
	password := ""
	if options.SmartHost != nil {
		password, _ = options.SmartHost.User.Password()
	}
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	var config bytes.Buffer
	form := template.Must(template.New("exim.conf").Delims("[[", "]]").Parse(eximConf))
	if err := form.Execute(&config, map[string]any{
		"Dir": s.dir, "UID": uid, "GID": gid, "Host": "relay.mailtest.example", "Port": port, "SecurePort": securePort,
		"User": encode(s.User), "Password": encode(s.Password), "LoginOnly": options.LoginOnly, "Refuse": options.Refuse,
		"SmartHost": options.SmartHost, "SmartPassword": password,
	}); err != nil {
		return err
	}
	const halfDay = 12 * 60 * 60 * 1000
	now := time.Now().UnixMilli()
	authority := servertest.NewAuthority(t)
	certificate := authority.Certificate(now-halfDay, now+halfDay, "127.0.0.1", "localhost")
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return err
	}
	// A copy leaves the set-user-ID bit behind, with which the server would not end with the
	// test. A process of its own makes it: a file that this one had open to write could be open in
	// a child that another test starts, and is busy then.
	own := filepath.Join(s.dir, "exim")
	if err := errors.Join(exec.Command("cp", program, own).Run(), os.Chmod(own, 0o700)); err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"exim.conf": config.Bytes(), "ca.pem": authority.PEM(),
		"server.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		"server.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, name), text, 0o700))
	}
	for _, name := range []string{"spool", "log", "box"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(s.dir, name), 0o700))
	}
	if os.Getuid() != 0 || err != nil {
		return err
	}
	return filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, uid, gid))
	})
}

// account returns the user and the group that the server runs as: the test's own, or those
// without rights where that is root, as which Exim delivers no mail.
func account() (uid, gid int) {
	if os.Getuid() == 0 {
		return 65534, 65534
	}
	return os.Getuid(), os.Getgid()
}

// launch starts the server, with the processes that it starts as one group.
func (s *Server) launch(t testing.TB) {
	t.Helper()
	words, err := os.Create(filepath.Join(s.dir, "words"))
	if err != nil {
		t.Fatalf("cannot open a file for what a mail server says: %v", err)
	}
	defer words.Close() // the child has its own by then
	cmd := s.command("-bdf")
	cmd.Stdout, cmd.Stderr = words, words // no pipe, which its children would hold open
	s.ended = servertest.Start(t, cmd).Ended
	t.Cleanup(func() { endGroup(cmd.Process.Pid) })
}

// command is one of the program, as the server's user, in a group of its own.
func (s *Server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.dir, "exim"), append([]string{"-C", filepath.Join(s.dir, "exim.conf")}, args...)...)
	cmd.Dir = s.dir
	ownGroup(cmd)
	return cmd
}

// Submit gives the server an email, as programs of its machine do, and returns when it was tried once.
func (s *Server) Submit(t testing.TB, from, text string, to ...string) {
	t.Helper()
	cmd := s.command(append([]string{"-odf", "-f", from}, to...)...)
	cmd.Stdin = strings.NewReader(text)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("submitting an email: %v: %s", err, said)
	}
}

// RunQueue has the server try once what is queued, whenever that is due.
func (s *Server) RunQueue(t testing.TB) {
	t.Helper()
	if said, err := s.command("-qff").CombinedOutput(); err != nil {
		t.Fatalf("running the queue: %v: %s", err, said)
	}
}

// Queued is how many emails are queued.
func (s *Server) Queued(t testing.TB) int {
	t.Helper()
	heads, err := filepath.Glob(filepath.Join(s.dir, "spool", "input", "*-H"))
	if err != nil {
		t.Fatal(err)
	}
	return len(heads)
}

func greets(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(startLimit))
	client, err := smtp.NewClient(conn, "localhost")
	if err != nil {
		return err
	}
	return errors.Join(client.Hello("mailtest"), client.Quit()) // or the log would tell of a lost connection
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

// STARTTLS returns the URL of a relay that is spoken to in the clear first.
func (s *Server) STARTTLS() string { return s.url("smtp", s.Addr) }

// SMTPS returns the URL of a relay with TLS from the first octet.
func (s *Server) SMTPS() string { return s.url("smtps", s.SecureAddr) }

func (s *Server) url(scheme, addr string) string {
	u := url.URL{Scheme: scheme, Host: addr, User: url.UserPassword(s.User, s.Password), RawQuery: "ca=" + url.QueryEscape(s.CA)}
	return u.String()
}

// Log returns what the server has written into its log so far.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log", "mainlog")) // there is none before the first line
	return string(text)
}

// lastWords returns the end of all that the server said.
func (s *Server) lastWords() string {
	var all strings.Builder
	for _, name := range []string{"words", "log/paniclog", "log/mainlog"} {
		if text, err := os.ReadFile(filepath.Join(s.dir, name)); err == nil {
			all.Write(text[max(0, len(text)-1000):])
		}
	}
	return all.String()
}
