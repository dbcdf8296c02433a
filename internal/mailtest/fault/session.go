package fault

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// session is one connection. It ends with the first error, whatever it is: a
// relay that misbehaves gives no reason.
type session struct {
	server   *Server
	socket   net.Conn
	stream   net.Conn
	in       *bufio.Reader
	received []byte // guarded by the server's lock, as is ended
	ended    bool
	turned   bool   // away, as there were as many as may be
	late     bool   // beyond those that may send
	unsaid   []byte // answers held back
	heard    string // the last line

	secure   bool
	from, to string // of the email that is open
}

var (
	errOver    = errors.New("the conversation is over")
	errRefused = errors.New("refused: the conversation goes on")
)

// Read reads for s.in, keeping what comes.
func (s *session) Read(p []byte) (int, error) {
	n, err := s.stream.Read(p)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.received = append(s.received, p[:n]...)
	return n, err
}

func (s *session) converse() {
	s.in = bufio.NewReader(s)
	if _, script := s.server.due(""); script.ImplicitTLS && s.handshake(script.TLS) != nil {
		return
	}
	if s.turned {
		s.say("421 4.7.0 too many connections")
		return
	}
	err := s.answer(Banner, "220 fault.localhost ESMTP")
	for err == nil || errors.Is(err, errRefused) {
		var line string
		if line, err = s.in.ReadString('\n'); err == nil {
			err = s.handle(strings.TrimRight(line, "\r\n"))
		}
	}
	// What was held back goes out before the end; the client may have gone.
	_, _ = s.stream.Write(s.unsaid)
}

func (s *session) handle(line string) error {
	s.heard = line
	verb, rest, _ := strings.Cut(line, " ")
	switch strings.ToUpper(verb) {
	case "EHLO":
		return s.answer(EHLO, s.offers())
	case "STARTTLS":
		return s.upgrade()
	case "AUTH":
		return s.authenticate(rest)
	case "RSET":
		s.from, s.to = "", ""
		return s.answer(RSET, "250 2.0.0 flushed")
	case "MAIL":
		err := s.answer(MAIL, "250 2.1.0 sender ok")
		if err == nil {
			s.from, s.to = inBrackets(rest), ""
		}
		return err
	case "RCPT":
		return s.rcpt(rest)
	case "DATA":
		return s.data()
	case "QUIT":
		s.say("221 2.0.0 bye")
		return errOver
	}
	return s.say("250 2.0.0 ok")
}

func inBrackets(rest string) string {
	_, rest, _ = strings.Cut(rest, "<")
	address, _, _ := strings.Cut(rest, ">")
	return address
}

func (s *session) offers() string {
	_, script := s.server.due("")
	lines := []string{"fault.localhost", fmt.Sprint("SIZE ", cmp.Or(script.Size, 100_000_000))}
	if !script.NoPipelining {
		lines = append(lines, "PIPELINING")
	}
	if !script.NoEightBit {
		lines = append(lines, "8BITMIME")
	}
	if script.TLS != nil && !s.secure && !script.NoSTARTTLS {
		lines = append(lines, "STARTTLS")
	}
	switch {
	case script.NoAUTH:
	case script.LoginOnly:
		lines = append(lines, "AUTH LOGIN")
	default:
		lines = append(lines, "AUTH PLAIN LOGIN XOAUTH2")
	}
	last := len(lines) - 1
	return "250-" + strings.Join(lines[:last], "\r\n250-") + "\r\n250 " + lines[last]
}

func (s *session) upgrade() error {
	if err := s.answer(STARTTLS, "220 2.0.0 go ahead"); err != nil {
		return err
	}
	_, script := s.server.due("")
	return s.handshake(script.TLS)
}

func (s *session) handshake(config *tls.Config) error {
	if kind, _ := s.server.due(Handshake); kind != None {
		return s.misbehave(kind, "")
	}
	encrypted := tls.Server(s.socket, config)
	if err := encrypted.Handshake(); err != nil {
		return err
	}
	s.stream, s.secure = encrypted, true
	s.in.Reset(s)
	return nil
}

func (s *session) authenticate(rest string) error {
	var challenges []string
	switch strings.ToUpper(rest) {
	case "LOGIN":
		challenges = []string{"334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6"}
	case "PLAIN", "XOAUTH2": // and what is longer than a line may be comes then
		challenges = []string{"334 "}
	}
	for _, challenge := range challenges {
		if err := s.challenge(challenge); err != nil {
			return err
		}
	}
	return s.answer(AUTH, "235 2.7.0 welcome")
}

// challenge asks, and hears the answer.
func (s *session) challenge(text string) error {
	if err := s.say(text); err != nil {
		return err
	}
	line, err := s.in.ReadString('\n')
	s.heard = strings.TrimRight(line, "\r\n")
	return err
}

// password returns what the last line says as an answer to AUTH, decoded.
func (s *session) password() string {
	words := strings.Fields(s.heard)
	decoded, _ := base64.StdEncoding.DecodeString(words[len(words)-1]) // what cannot be decoded is no password
	return string(decoded[bytes.LastIndexByte(decoded, 0)+1:])
}

func (s *session) rcpt(rest string) (err error) {
	const right = "250 2.1.5 recipient ok"
	_, script := s.server.due("")
	switch {
	case s.from == "":
		return s.say("503 5.5.1 say MAIL first")
	case strings.Contains(rest, script.To):
		err = s.answer(RCPT, right)
	default:
		err = s.say(right)
	}
	if err == nil {
		s.to = strings.TrimSpace(s.to + " " + inBrackets(rest))
	}
	return err
}

func (s *session) data() error {
	if _, script := s.server.due(""); s.to == "" && !script.OpenForRefused {
		return s.say("503 5.5.1 no valid recipient")
	}
	if err := s.answer(DATA, "354 go on"); err != nil {
		return err
	}
	if kind, _ := s.server.due(Content); kind != None {
		if _, err := s.in.Peek(1); err != nil {
			return err
		}
		return s.misbehave(kind, "")
	}
	var text []byte
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return err
		}
		if bytes.Equal(line, []byte(".\r\n")) {
			break
		}
		text = append(text, line...)
	}
	kind, _ := s.server.due(Dot)
	s.server.deliver(Mail{
		From: s.from, To: s.to, Text: text, ReceivedMS: time.Now().UnixMilli(),
		Refused: s.late || kind == Temporary || kind == Permanent || kind == Barred || kind == Curt || kind == Leaving,
	})
	s.from, s.to = "", ""
	if s.late {
		return s.say("432 4.3.2 concurrent connections limit exceeded")
	}
	return s.misbehave(kind, "250 2.0.0 accepted")
}

// answer gives the right answer, or the wrong one that is due.
func (s *session) answer(step Step, right string) error {
	kind, _ := s.server.due(step)
	return s.misbehave(kind, right)
}

func (s *session) say(line string) error {
	s.unsaid = append(append(s.unsaid, line...), "\r\n"...)
	if _, script := s.server.due(""); script.HoldBack && s.in.Buffered() > 0 {
		return nil
	}
	_, err := s.stream.Write(s.unsaid)
	s.unsaid = s.unsaid[:0]
	return err
}

// refusals are the wrong answers that need nothing but a text.
var refusals = map[Kind]string{
	Temporary: "451 4.3.0 not now, <recipient@secret.example>",
	Permanent: "554 5.1.1 never, <recipient@secret.example>",
	Curt:      "550 go away, <recipient@secret.example>",
	Barred:    "554 5.7.1 not from you to <recipient@secret.example>",
	Garbage:   "HTTP/1.1 200 OK",
}

// misbehave does what is due: with None it gives the right answer.
func (s *session) misbehave(kind Kind, right string) error {
	if refusal, ok := refusals[kind]; ok {
		return errors.Join(s.say(refusal), errRefused)
	}
	switch kind {
	case None:
		return s.say(right)
	case Echo:
		return errors.Join(s.say("500 5.5.2 what is "+s.heard), errRefused)
	case Tell:
		return errors.Join(s.say("535 5.7.8 wrong password: "+s.password()), errRefused)
	case Challenge:
		if err := s.challenge("334 " + base64.StdEncoding.EncodeToString([]byte(`{"status":"401","schemes":"bearer"}`))); err != nil {
			return err
		}
		if s.heard != "" {
			return errors.Join(s.say("501 5.5.4 that was to be empty"), errRefused)
		}
		return errors.Join(s.say("535 5.7.8 not with this token"), errRefused)
	case Leaving:
		s.say("421 4.3.2 shutting down")
		return errOver
	case Expelling:
		s.say("554 5.4.7 idle for too long")
		return errOver
	case HangUp:
		return errOver
	case WrongCode:
		wrong := "354 go on"
		if strings.HasPrefix(right, "3") {
			wrong = "250 2.0.0 ok"
		}
		return errors.Join(s.say(wrong), errRefused)
	case Chatter:
		return s.say(right + "\r\n250 2.0.0 and another thing")
	case Drip:
		return s.drip(right)
	case Endless:
		return s.endless("250-and another thing\r\n")
	case LongLine:
		return s.endless("250-and so on and on and on")
	case Reset:
		return s.reset()
	}
	return s.silence(right == "")
}

// silence reads on, so that what a client says meanwhile is on record, until it has gone. With
// stalled it reads nothing for ten drips first, so that a client is stuck in the middle of an
// email's text.
func (s *session) silence(stalled bool) error {
	if _, script := s.server.due(""); stalled {
		<-time.After(10 * script.DripEvery)
	}
	_, err := io.Copy(io.Discard, s.in)
	return errors.Join(err, errOver)
}

// endless answers without coming to an end.
func (s *session) endless(text string) error {
	for {
		if _, err := io.WriteString(s.stream, text); err != nil {
			return err
		}
	}
}

func (s *session) drip(right string) error {
	_, script := s.server.due("")
	tick := time.NewTicker(script.DripEvery)
	defer tick.Stop()
	for _, octet := range []byte(right + "\r\n") {
		<-tick.C
		if _, err := s.stream.Write([]byte{octet}); err != nil {
			return err
		}
	}
	return nil
}

// reset cuts the connection so that the client sees it as an error at once.
func (s *session) reset() error {
	err := s.socket.(*net.TCPConn).SetLinger(0)
	s.socket.Close()
	return errors.Join(err, errOver)
}
