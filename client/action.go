package client

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// Taken is an action that was admitted and counted.
type Taken struct {
	Quota
	ID    string        // for [Client.Release]
	Delay time.Duration // how long to hold the action back, if its limit queues
}

// Take asks whether a subject, such as an account, may take an action now, and counts it if so;
// otherwise the error is a [LimitError]. The operator names the actions. It retries under one key,
// so a take from an action with tiers counts once; other algorithms may count a retry again.
func (c *Client) Take(ctx context.Context, action, subject string) (Taken, error) {
	a, err := c.act(ctx, action, request{op: "take", body: actionJSON{Subject: subject}, key: NewKey()}, func(a *answer) bool {
		return a.Allowed != nil && *a.Allowed && a.ID != "" && a.decided()
	})
	return Taken{a.quota(), a.ID, a.Delay.duration()}, err
}

// Peek reports whether Take would admit the action now. It counts nothing.
func (c *Client) Peek(ctx context.Context, action, subject string) (allowed bool, q Quota, err error) {
	a, err := c.act(ctx, action, request{op: "peek", body: actionJSON{Subject: subject}, reads: true}, func(a *answer) bool {
		return a.Allowed != nil && a.decided()
	})
	return a.Allowed != nil && *a.Allowed, a.quota(), err
}

// Release refunds a take by its ID, and reports whether there was one. Like Verify it is
// repeated only if mailgate certainly did nothing: a limit that only counts would refund twice.
func (c *Client) Release(ctx context.Context, action, subject, id string) (released bool, err error) {
	a, err := c.act(ctx, action, request{op: "release", body: actionJSON{subject, id}, countsAgain: true}, func(a *answer) bool { return a.Released != nil })
	return a.Released != nil && *a.Released, err
}

type actionJSON struct {
	Subject string `json:"subject"`
	ID      string `json:"id,omitempty"`
}

func (c *Client) act(ctx context.Context, action string, r request, complete func(*answer) bool) (*answer, error) {
	if action == "" || action == "." || action == ".." { // which would lead to another path
		return &answer{}, errors.New("mailgate: the action is empty or consists of dots")
	}
	r.path = "/actions/" + url.PathEscape(action) + "/" + r.op
	return c.do(ctx, r, complete)
}
