// Package notme makes the links in emails by which a recipient says that they did not ask for one.
package notme

import (
	"strings"

	"github.com/mailgate/mailgate/internal/countdown"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/throttle/rules"
)

const (
	// Path is where the pages of the links are.
	Path = "/not-me/"

	purpose  = "mailgate api: links of recipients who did not ask, version 1"
	lifetime = 30 * 24 * 60 * 60 * 1000 // milliseconds that a link is valid
)

// Links makes and reads links.
type Links struct {
	tokens *countdown.Tokens
	site   string
}

// New makes the Links of a secret, which lead to where recipients reach this node.
func New(of []byte, site string) (*Links, error) {
	key, err := secret.Key(of, purpose) // so that no countdown is such a link
	if err != nil {
		return nil, err
	}
	tokens, err := countdown.New(key)
	return &Links{tokens, strings.TrimSuffix(site, "/")}, err
}

// Make returns the link for the recipient of a send.
func (l *Links) Make(send rules.Send, now int64) string {
	return l.site + Path + l.tokens.Seal(string(send.AppendText(nil)), now+lifetime)
}

// Open returns what the token of a link says of the send, for rules.ParseSend.
func (l *Links) Open(token string, now int64) (send string, ok bool) {
	return l.tokens.Open(token, now)
}
