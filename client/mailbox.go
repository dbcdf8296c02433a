package client

import (
	"context"
	"net/http"
)

// A Mailbox is how a mailbox stands.
type Mailbox struct {
	Standing
	Email string
}

// Mailbox says what a send would be told now, as far as it does not depend on the visitor
// or the template. Looking spends nothing, but no caller may look without end: a [Wait] of
// the rule "lookups".
func (c *Client) Mailbox(ctx context.Context, email string) (Mailbox, error) {
	var j mailboxJSON
	q := question{doing: "looking at a mailbox", method: http.MethodGet, path: "/mailboxes/{}", named: argument{"email", email}, harmless: true}
	if _, err := c.ask(ctx, q, &j); err != nil {
		return Mailbox{}, err
	}
	return Mailbox{j.standing(), j.Email}, nil
}

type mailboxJSON struct {
	standingJSON
	Email string `json:"email"`
}

func (j *mailboxJSON) whole() bool { return j.Email != "" && j.standingJSON.whole() }
