package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"time"
)

// Mail is an email with a code. Only Email is required.
type Mail struct {
	Email string `json:"email"`
	// Code is a code of the caller's own, 4 to 12 of 0-9A-Za-z. Without it mailgate makes one, which
	// [Client.Verify] checks.
	Code string `json:"code,omitempty"`
	// Purpose is what a code of mailgate's is for, such as "sign-up": Verify accepts it for this
	// purpose only.
	Purpose   string            `json:"purpose,omitempty"`
	Template  string            `json:"template,omitempty"`
	Locale    string            `json:"locale,omitempty"`
	ClientIP  netip.Addr        `json:"client_ip,omitzero"`  // the visitor's, for limits by address
	Data      map[string]string `json:"data,omitempty"`      // short texts for the template
	Challenge string            `json:"challenge,omitempty"` // solved, after an [APIError] of kind [ChallengeRequired]
	// Key is the Idempotency-Key, 1 to 255 visible ASCII characters. Sends with the same Key and
	// content are one email. Without it each call generates one.
	Key string `json:"-"`
}

// Sent is an email that the relay accepted. Its Wait is the time until the next one.
type Sent struct {
	Quota
	ID        string // in mailgate's log and storage
	MessageID string // the email's, with angle brackets
	Email     string
	ExpiresIn time.Duration // how long the code is valid, if mailgate made it
}

// NewKey returns a new Idempotency-Key.
func NewKey() string { return rand.Text() }

// Send sends a code and returns when the relay has accepted the email. It retries under one
// key where that is safe, so one call sends at most one email.
func (c *Client) Send(ctx context.Context, m Mail) (Sent, error) {
	key := cmp.Or(m.Key, NewKey())
	if len(key) > 255 || !visible(key) {
		return Sent{}, errors.New("mailgate: send: the key must be 1 to 255 visible ASCII characters")
	}
	m.ClientIP = m.ClientIP.WithZone("") // which means something on one machine only
	r := request{op: "send", path: "/send-code", body: m, key: key, mail: true}
	a, err := c.do(ctx, r, func(a *answer) bool { return a.Status == "sent" && a.ID != "" && a.decided() })
	return Sent{a.quota(), a.ID, a.MessageID, a.Email, a.ExpiresIn.duration()}, err
}

// Guess is a code to check.
type Guess struct {
	Email   string `json:"email"`
	Code    string `json:"code"`              // as the visitor typed it
	Purpose string `json:"purpose,omitempty"` // of the send
}

// Verify checks a code that mailgate made and sent. A nil error means that the code was correct,
// and it is used up. Otherwise the error is an [APIError] of kind [CodeIncorrect] or [CodeExpired],
// or a [LimitError] after too many guesses.
func (c *Client) Verify(ctx context.Context, g Guess) error {
	r := request{op: "verify", path: "/verify-code", body: g, countsAgain: true}
	_, err := c.do(ctx, r, func(a *answer) bool { return a.Verified })
	return err
}

// Report tells mailgate that a code of the caller's own was right, for rules that count unverified sends. It may be
// repeated.
func (c *Client) Report(ctx context.Context, email string) error {
	body := struct {
		Email    string `json:"email"`
		Verified bool   `json:"verified"`
	}{email, true}
	_, err := c.do(ctx, request{op: "report", path: "/verify-code", body: body}, func(a *answer) bool { return a.Verified })
	return err
}

// Mailbox returns the limits of a mailbox, and how long its next email from this caller has to wait.
// It uses no quota.
func (c *Client) Mailbox(ctx context.Context, email string) (Quota, error) {
	body := struct {
		Email string `json:"email"`
	}{email}
	r := request{op: "mailbox", path: "/mailboxes/peek", body: body, reads: true}
	a, err := c.do(ctx, r, func(a *answer) bool { return a.Email != "" && a.decided() })
	return a.quota(), err
}
