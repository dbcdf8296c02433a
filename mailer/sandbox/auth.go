package sandbox

import (
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// authenticate answers AUTH PLAIN and AUTH LOGIN, with or without the initial
// response, under TLS alone.
func (s *session) authenticate(rest string) error {
	mechanism, initial, _ := strings.Cut(rest, " ")
	switch {
	case s.server.options.User == "" || !s.secure:
		s.say("503 5.5.1 AUTH is not offered")
		return nil
	case s.opened:
		s.say("503 5.5.1 not inside a mail")
		return nil
	case strings.EqualFold(mechanism, "PLAIN"):
		return s.plain(initial)
	case strings.EqualFold(mechanism, "LOGIN"):
		return s.login(initial)
	}
	s.say("504 5.5.4 mechanism not offered")
	return nil
}

func (s *session) plain(initial string) error {
	response, err := s.response(initial, "")
	if err != nil {
		return err
	}
	fields := strings.Split(response, "\x00")
	if len(fields) != 3 {
		fields = []string{"", "", ""}
	}
	s.judge(fields[1], fields[2])
	return nil
}

func (s *session) login(initial string) error {
	user, err := s.response(initial, "Username:")
	if err != nil {
		return err
	}
	password, err := s.response("", "Password:")
	if err != nil {
		return err
	}
	s.judge(user, password)
	return nil
}

// response is what the client says to a challenge, unless it said so already.
func (s *session) response(already, challenge string) (string, error) {
	if already == "" {
		s.say("334 " + base64.StdEncoding.EncodeToString([]byte(challenge)))
		line, err := s.line()
		if err != nil {
			return "", err
		}
		already = string(line)
	}
	decoded, err := base64.StdEncoding.DecodeString(already)
	if err != nil {
		return "", nil // judged as a wrong password, which it is
	}
	return string(decoded), nil
}

func (s *session) judge(user, password string) {
	right := subtle.ConstantTimeCompare([]byte(user), []byte(s.server.options.User)) &
		subtle.ConstantTimeCompare([]byte(password), []byte(s.server.options.Password))
	if right == 1 {
		s.authorized = true
		s.say("235 2.7.0 welcome")
		return
	}
	s.say("535 5.7.8 wrong user or password")
}
