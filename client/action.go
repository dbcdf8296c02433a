package client

import (
	"context"
	"net/http"
	"time"
)

// A Taken says that an action may be done now, and has been counted. Its Standing is how
// the subject stands now.
type Taken struct {
	Standing
	ID    string        // what [Client.Release] gives back
	Delay time.Duration // how long to hold the action back until its turn; 0 for not at all
}

// A Peeked is what a take would be told.
type Peeked struct {
	Standing
	Allowed bool
}

// Take asks whether an action may be done now by a subject, such as an account, and counts
// it if so. Otherwise the error is a [Wait], and nothing was counted. The operator names
// the actions and their limits.
// An action without a name is [ErrArgument].
//
// It asks again under a key of its own where that makes sense, so one call counts once at most;
// but where a fixed window ends meanwhile, once in each.
// It may have counted all the same where the error is a [NoAnswer] that is not NotAsked,
// [ErrAnswer], or a [Problem] with a Status of 500 or more: such as a proxy's 502, mailgate's own
// 500, or its [Busy], as an attempt before the last may have counted.
func (c *Client) Take(ctx context.Context, action, subject string) (Taken, error) {
	var j takenJSON
	q := question{doing: "taking an action", method: http.MethodPost, path: "/actions/{}/take", named: argument{"action", action}, body: subjectJSON{subject}, key: NewKey(), harmless: true}
	if _, err := c.ask(ctx, q, &j); err != nil {
		return Taken{}, err
	}
	return Taken{j.standing(), j.ID, time.Duration(j.Delay)}, nil
}

// Peek says what a take would be told now. Nothing is counted, and a no is not an error.
func (c *Client) Peek(ctx context.Context, action, subject string) (Peeked, error) {
	var j peekedJSON
	q := question{doing: "looking at an action", method: http.MethodPost, path: "/actions/{}/peek", named: argument{"action", action}, body: subjectJSON{subject}, harmless: true}
	if _, err := c.ask(ctx, q, &j); err != nil {
		return Peeked{}, err
	}
	return Peeked{j.standing(), *j.Allowed}, nil
}

// Release gives back a take of which nothing came, by the ID that it was answered with. It
// reports whether there was one to give back: not if an earlier attempt, whose answer was
// lost, has given it back already. What ends in an error may have been given back too, and
// to ask again does no harm.
func (c *Client) Release(ctx context.Context, action, subject, id string) (bool, error) {
	var j releasedJSON
	q := question{doing: "giving an action back", method: http.MethodPost, path: "/actions/{}/release", named: argument{"action", action}, body: releaseJSON{subject, id}, harmless: true}
	if _, err := c.ask(ctx, q, &j); err != nil {
		return false, err
	}
	return *j.Released, nil
}

type subjectJSON struct {
	Subject string `json:"subject"`
}

type releaseJSON struct {
	Subject string `json:"subject"`
	ID      string `json:"id"`
}

type takenJSON struct {
	standingJSON
	Allowed bool   `json:"allowed"`
	ID      string `json:"id"`
	Delay   millis `json:"delay_ms"`
}

func (j *takenJSON) whole() bool { return j.Allowed && j.ID != "" && j.standingJSON.whole() }

type peekedJSON struct {
	standingJSON
	Allowed *bool `json:"allowed"`
}

func (j *peekedJSON) whole() bool { return j.Allowed != nil && j.standingJSON.whole() }

type releasedJSON struct {
	Released *bool `json:"released"`
}

func (j *releasedJSON) whole() bool { return j.Released != nil }
