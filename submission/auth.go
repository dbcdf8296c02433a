package submission

import (
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
		return sasl.NewPlainServer(func(identity, user, password string) error {
			if identity != "" && identity != user {
				user = "" // which no key is named
			}
			return s.signIn(user, password)
		}), nil
	case mechanism == sasl.Login:
		return &login{signIn: s.signIn}, nil
	}
	return nil, smtp.ErrAuthUnknownMechanism
}

// login asks for the user, who may have come with the command, and then for the password. The library has
// no server for it.
type login struct {
	user   []byte
	signIn func(user, password string) error
}

// Next implements sasl.Server. The response is nil where the client has said nothing yet.
func (l *login) Next(response []byte) (challenge []byte, done bool, err error) {
	switch {
	case response == nil:
		return []byte("Username:"), false, nil
	case l.user == nil:
		l.user = response
		return []byte("Password:"), false, nil
	}
	return nil, true, l.signIn(string(l.user), string(response))
}

// signIn checks the name of a key and its secret, and moves the connection to the share of the key. A
// connection that had too many wrong ones gets 421; those on others refuse no right one.
func (s *session) signIn(user, password string) error {
	if s.failures == maxFailures { // sent before the connection could be closed
		return wrongKeys
	}
	name, known := s.server.Keys.Find([]byte(password))
	switch {
	case known && name == user && s.server.signIn(s.conn, name):
		s.key, s.signedIn = name, true
		s.conn.limit(noLimit)
		return nil
	case known && name == user:
		s.conn.stop(timedOut)
		return tooManyOfKey
	}
	s.failures++
	if s.server.WrongKey(s.conn.from) {
		s.failures = maxFailures
	} else { // a flood costs no log line
		s.log(entry{outcome: "wrong-key", answer: wrongKey})
	}
	if s.failures == maxFailures {
		s.conn.stop(timedOut)
	}
	return wrongKey
}
