package submission

import (
	"strings"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// maxFailures are the wrong passwords after which a connection is closed, if its address has not sent too many.
const maxFailures = 3

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string {
	if s.server.Keys.IsZero() {
		return nil
	}
	return []string{sasl.Plain, sasl.Login}
}

// Auth implements smtp.AuthSession. The user is the name of an API key, the password its secret.
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	switch {
	case s.server.Keys.IsZero():
		return nil, smtp.ErrAuthUnsupported
	case mechanism == sasl.Plain:
		return exchange(s.plain), nil
	case mechanism == sasl.Login:
		return exchange(s.login()), nil
	}
	return nil, smtp.ErrAuthUnknownMechanism
}

// exchange is a step of a mechanism. The response is nil where the client has said nothing yet.
type exchange func(response []byte) (challenge []byte, done bool, err error)

// Next implements sasl.Server.
func (e exchange) Next(response []byte) ([]byte, bool, error) { return e(response) }

// plain is RFC 4616.
func (s *session) plain(response []byte) ([]byte, bool, error) {
	if response == nil {
		return nil, false, nil
	}
	parts := strings.Split(string(response), "\x00")
	if len(parts) != 3 || parts[0] != "" && parts[0] != parts[1] {
		return nil, false, reply(501, 5, 5, 2, "AUTH PLAIN takes the name of a key and its secret")
	}
	return nil, true, s.signIn(parts[1], parts[2])
}

// login asks for the user, who may have come with the command, and then for the password. The library has
// no server for it.
func (s *session) login() exchange {
	user, asked := "", false
	return func(response []byte) ([]byte, bool, error) {
		switch {
		case response == nil:
			return []byte("Username:"), false, nil
		case !asked:
			user, asked = string(response), true
			return []byte("Password:"), false, nil
		}
		return nil, true, s.signIn(user, string(response))
	}
}

// signIn checks the name of a key and its secret, and gives the connection a place in the key's share. A right
// one is never refused for wrong ones.
func (s *session) signIn(user, password string) error {
	if s.failures == maxFailures { // sent before the connection could be closed
		return wrongKeys
	}
	name, known := s.server.Keys.Find([]byte(password))
	if !known || name != user {
		s.failures++
		if s.server.WrongKey(s.conn.from) {
			s.failures = maxFailures
		} else { // a flood costs no log line
			s.log(entry{outcome: "wrong-key", answer: wrongKey})
		}
		if s.failures == maxFailures {
			s.conn.stop(false)
		}
		return wrongKey
	}
	if !s.server.signIn(s.conn, name) {
		s.conn.stop(false)
		return tooManyOfKey
	}
	s.key, s.signedIn = name, true
	s.conn.limit(noLimit)
	return nil
}
