package relay

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/trace"
)

var (
	errNoAUTH       = errors.New("the relay offers neither AUTH PLAIN nor AUTH LOGIN")
	errTokenRefused = errors.New("the relay rejected the token of the token server")
)

// login authenticates. It is reached under TLS only, since ParseURL takes no password for
// a connection without.
func (c *conn) login() *Error {
	login := c.relay.url.login()
	if c.relay.tokens != nil {
		return c.loginByToken(login.user)
	}
	encode := base64.StdEncoding.EncodeToString
	switch {
	case slices.Contains(c.offers.auth, "PLAIN"):
		both := encode([]byte("\x00" + login.user + "\x00" + login.password))
		return c.tell(atOnce("PLAIN", both), login.password, both)
	case slices.Contains(c.offers.auth, "LOGIN"):
		user, password := encode([]byte(login.user)), encode([]byte(login.password))
		return c.tell([]string{"AUTH LOGIN", user, password}, login.password, password)
	}
	return c.lost(StepAUTH, errNoAUTH)
}

// mostCommandBytes is the limit of a line by RFC 4954. A longer response waits for the
// relay to ask for it.
const mostCommandBytes = 512

// atOnce returns the lines that give a response along with the mechanism, if there is room.
func atOnce(mechanism, response string) []string {
	line := "AUTH " + mechanism + " " + response
	if len(line)+len("\r\n") > mostCommandBytes {
		return []string{"AUTH " + mechanism, response}
	}
	return []string{line}
}

// loginByToken authenticates by SASL XOAUTH2. A relay that refuses a token may say why in a 334,
// and its refusal follows after an empty line.
func (c *conn) loginByToken(user string) *Error {
	if !slices.Contains(c.offers.auth, "XOAUTH2") {
		return c.lost(StepAUTH, errors.New(oneLine("the relay does not offer AUTH XOAUTH2, but AUTH "+strings.Join(c.offers.auth, " "))))
	}
	tokens := c.relay.tokens
	c.asked = time.Now()
	token, err := tokens.get(c.budget.ctx)
	if err != nil {
		server, _ := url.Parse(tokens.config.TokenURL)
		failure := c.lost(StepAUTH, err)
		failure.Err = fmt.Errorf("the token server %s: %w", server.Host, failure.Err)
		return failure
	}
	both := base64.StdEncoding.EncodeToString([]byte("user=" + user + "\x01auth=Bearer " + token + "\x01\x01"))
	failure := c.tell(append(atOnce("XOAUTH2", both), ""), both, token)
	if failure != nil && failure.Reply != nil && failure.Reply.Code/100 == 5 {
		tokens.refused(token)
		failure.Err = errTokenRefused
	}
	return failure
}

// tell says the lines of a login, each after the one before was answered 334. Some servers repeat what they refuse, or
// its beginning, so a refusal whose text has a secret or the beginning of a long one loses its text.
func (c *conn) tell(lines []string, secrets ...string) *Error {
	for i, line := range lines {
		code, err := c.ask(line)
		trace.Event(c.budget.ctx, string(StepAUTH), code)
		switch {
		case err != nil:
			return c.lost(StepAUTH, err)
		case code == 235:
			return nil
		case code == 334 && i < len(lines)-1:
			continue
		}
		failure := c.refused(StepAUTH, code)
		for _, secret := range secrets {
			if bytes.Contains(c.in.text, []byte(secret[:min(len(secret), 12)])) {
				failure.Reply.Message = ""
			}
		}
		return failure
	}
	return nil
}
