package client

import (
	"context"
	"net/http"
	"time"
)

// What is in this file takes an admin key, which opens no other route.

// An Inspection is a mailbox and its mails.
type Inspection struct {
	Mailbox
	// Sends are the mails inside the longest limit, the oldest first.
	Sends []Admission
	// Guesses are how the guesses at its codes stand, the shortest window first; none where
	// the server checks no codes.
	Guesses []Limit
}

// An Admission is one mail that was admitted.
type Admission struct {
	ID string
	At time.Time
}

// Inspect says how a mailbox stands, and when each of its mails was admitted.
func (c *Client) Inspect(ctx context.Context, email string) (Inspection, error) {
	var j inspectionJSON
	q := question{doing: "inspecting a mailbox", method: http.MethodGet, path: "/admin/mailboxes/{}", named: argument{"email", email}, harmless: true}
	if _, err := c.ask(ctx, q, &j); err != nil {
		return Inspection{}, err
	}
	return Inspection{Mailbox{j.standing(), j.Email}, j.Sends, j.Guesses.limits()}, nil
}

type inspectionJSON struct {
	mailboxJSON
	Sends   []Admission `json:"sends"`
	Guesses limitsJSON  `json:"guesses"`
}

func (j *inspectionJSON) whole() bool { return j.Sends != nil && j.mailboxJSON.whole() }

// Reset lets a mailbox start afresh, and says how many mails were forgotten. The reason,
// of up to 500 characters, goes to mailgate's audit log; it may be empty. The count is the
// last attempt's: not in it is what an earlier one forgot that mailgate could not complete,
// and that was made again. The audit log has all of them.
func (c *Client) Reset(ctx context.Context, email, reason string) (int, error) {
	return c.reset(ctx, question{
		doing: "resetting a mailbox", path: "/admin/mailboxes/{}/reset", named: argument{"email", email}, body: resetJSON{Reason: reason},
	})
}

// ResetAction lets a subject start afresh with an action, and says how many takes were
// forgotten. The reason and the count are as for [Client.Reset].
func (c *Client) ResetAction(ctx context.Context, action, subject, reason string) (int, error) {
	return c.reset(ctx, question{
		doing: "resetting an action", path: "/admin/actions/{}/reset", named: argument{"action", action}, body: resetJSON{&subject, reason},
	})
}

// ResetRule lets a subject start afresh with a rule that counts by something else than
// mailboxes, and says how many sends were forgotten. The subject is a visitor's address, a
// domain, or the name of an API key or of a template, whatever the rule counts by; empty
// for a rule that counts all sends. The reason and the count are as for [Client.Reset].
func (c *Client) ResetRule(ctx context.Context, rule, subject, reason string) (int, error) {
	body := resetJSON{Reason: reason}
	if subject != "" {
		body.Subject = &subject
	}
	return c.reset(ctx, question{
		doing: "resetting a rule", path: "/admin/rules/{}/reset", named: argument{"rule", rule}, body: body,
	})
}

func (c *Client) reset(ctx context.Context, q question) (int, error) {
	var j clearedJSON
	q.method = http.MethodPost
	if _, err := c.ask(ctx, q, &j); err != nil {
		return 0, err
	}
	return *j.Cleared, nil
}

type resetJSON struct {
	Subject *string `json:"subject,omitempty"`
	Reason  string  `json:"reason,omitempty"`
}

type clearedJSON struct {
	Cleared *int `json:"cleared"`
}

func (j *clearedJSON) whole() bool { return j.Cleared != nil }
