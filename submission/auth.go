package submission

import (
	"encoding/base64"
	"strings"

	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/network"
)

// maxFailures are the wrong passwords after which a connection is closed, if its address has not sent too many.
const maxFailures = 3

// auth signs a client in by PLAIN or LOGIN. The user is the name of an API key, the password its secret.
func (s *session) auth(argument string) *reply {
	mechanism, said, initial := strings.Cut(argument, " ")
	mechanism = strings.ToUpper(mechanism)
	asks := map[string][]string{"PLAIN": {""}, "LOGIN": {"Username:", "Password:"}}[mechanism]
	switch {
	case s.server.Keys.IsZero():
		return notOffered
	case s.conn.signedIn:
		return wrongOrder
	case mechanism == "":
		return badArgument
	case !s.trusted:
		return &reply{523, "5.7.10", "say STARTTLS first"}
	case asks == nil:
		return &reply{504, "5.5.4", "AUTH has PLAIN and LOGIN"}
	}
	malformed := &reply{501, "5.5.2", "what AUTH says cannot be read"}
	var answers []string
	for i, ask := range asks {
		if i > 0 || !initial {
			s.conn.say(&reply{334, "", base64.StdEncoding.EncodeToString([]byte(ask))})
			var ended *reply
			if said, ended = s.conn.line(); ended != nil {
				return ended
			}
		}
		if said == "*" {
			return &reply{501, "5.7.0", "AUTH is cancelled"}
		}
		answer, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(said, "=")) // which stands for nothing
		if err != nil {
			return s.wrongKey(malformed)
		}
		answers = append(answers, string(answer))
	}
	if mechanism == "PLAIN" {
		if answers = strings.Split(answers[0], "\x00"); len(answers) != 3 {
			return s.wrongKey(malformed)
		}
	}
	user, password := answers[len(answers)-2], answers[len(answers)-1]
	name, known := s.server.Keys.Find([]byte(password))
	switch as := answers[0]; {
	case !known || name != user || mechanism == "PLAIN" && as != "" && as != user:
		return s.wrongKey(tells(ledger.WrongKey))
	case !s.server.signIn(s.conn, name):
		return &reply{421, "4.3.2", "too many connections with this key"}
	}
	s.conn.until = noLimit
	return &reply{235, "2.7.0", "signed in"}
}

// wrongKey counts a wrong key. The connection ends at the third, or if its address has sent too many; those on
// others refuse no right one.
func (s *session) wrongKey(answer *reply) *reply {
	s.failures++
	if v, err := s.server.WrongKeys.Take(s.server.life, network.KeyOf(s.conn.from)); err == nil && !v.Allowed {
		s.failures = maxFailures
	} else { // a flood costs no log line
		s.note(ledger.Outcome{What: ledger.WrongKey}, answer)
	}
	if s.failures < maxFailures {
		return answer
	}
	return s.lastly(answer, "too many wrong passwords")
}
