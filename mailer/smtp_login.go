package mailer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The reasons for not being logged in beside a relay's own.
var (
	errNoAUTH       = errors.New("the relay offers neither AUTH PLAIN nor AUTH LOGIN")
	errTokenRefused = errors.New("the relay refuses the token that the token server gave")
)

// login authenticates. It is reached under TLS only: ParseRelayURL takes no
// password for a connection without.
func (o *opener) login(p patience, c *smtpConn) *SendError {
	if o.tokens != nil {
		return o.loginByToken(p, c)
	}
	user, password := o.url.login()
	switch {
	case c.offers.login("PLAIN"):
		both := base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
		return c.tell(p, atOnce("PLAIN", both), both)
	case c.offers.login("LOGIN"):
		user, password := base64.StdEncoding.EncodeToString([]byte(user)), base64.StdEncoding.EncodeToString([]byte(password))
		return c.tell(p, []string{"AUTH LOGIN", user, password}, user, password)
	}
	return c.lost(p, StepAUTH, errNoAUTH)
}

// mostCommandBytes of a line may be sent with a password or a token in it, by RFC 4954:
// what is longer waits for the relay to ask for it.
const mostCommandBytes = 512

// atOnce are the lines that say a response along with the way to log in, if there is room.
func atOnce(mechanism, response string) []string {
	line := "AUTH " + mechanism + " " + response
	if len(line)+len("\r\n") > mostCommandBytes {
		return []string{"AUTH " + mechanism, response}
	}
	return []string{line}
}

// loginByToken is SASL XOAUTH2. A relay that refuses a token may say why before, with
// 334, and go on to its refusal when it is answered with an empty line.
func (o *opener) loginByToken(p patience, c *smtpConn) *SendError {
	if !c.offers.login("XOAUTH2") {
		instead := "no AUTH at all"
		if c.offers.auth != "" {
			instead = oneLine("AUTH " + c.offers.auth)
		}
		return c.lost(p, StepAUTH, errors.New("the relay does not offer AUTH XOAUTH2, but "+instead))
	}
	token, failure := o.token(p, c)
	if failure != nil {
		return failure
	}
	user, _ := o.url.login()
	both := base64.StdEncoding.EncodeToString([]byte("user=" + user + "\x01auth=Bearer " + token + "\x01\x01"))
	failure = c.tell(p, append(atOnce("XOAUTH2", both), ""), both, token)
	if failure != nil && failure.Reply != nil && failure.Reply.Code/100 == 5 {
		o.tokens.Refused(token)
		failure.Err = errTokenRefused
	}
	return failure
}

// token is one to log in with. The token server's trouble is the relay's: no mail goes
// out over it.
func (o *opener) token(p patience, c *smtpConn) (string, *SendError) {
	ctx, cancel := context.WithDeadline(p.ctx, p.until)
	defer cancel()
	c.asked = time.Now()
	token, err := o.tokens.Token(ctx)
	if err == nil {
		return token, nil
	}
	failure := c.lost(p, StepAUTH, err)
	failure.Err = fmt.Errorf("the token server %s: %w", o.tokens.Server(), failure.Err)
	return "", failure
}

// tell says the lines of a login one by one, each when the one before was answered 334.
// The text of a refusal is left out if it has any of the secrets in it, or how that
// begins: there are servers that repeat a line that they refuse.
func (c *smtpConn) tell(p patience, lines []string, secrets ...string) *SendError {
	for i, line := range lines {
		code, err := c.ask(p, line)
		switch {
		case err != nil:
			return c.lost(p, StepAUTH, err)
		case code == 235:
			return nil
		case code == 334 && i < len(lines)-1:
			continue
		}
		failure := c.refused(StepAUTH, code)
		for _, secret := range secrets {
			if strings.Contains(failure.Reply.Message, secret[:min(len(secret), 12)]) {
				failure.Reply.Message = ""
			}
		}
		return failure
	}
	return nil
}
