package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// A CodeIncorrect is the error of [Client.VerifyCode] for a wrong code.
type CodeIncorrect struct {
	AttemptsLeft int // guesses that the mailbox has left, until a Wait
	RequestID    string
}

// Error says how many guesses are left.
func (e *CodeIncorrect) Error() string {
	return fmt.Sprintf("the code is wrong, %d more may be tried", e.AttemptsLeft)
}

// ErrCodeExpired is the kind of error of [Client.VerifyCode] where there is no code that
// could still be right: none was mailed, all are too old, or one has been used.
var ErrCodeExpired = errors.New("there is no code to check any more")

// codeRefusal gives those problems their own types that only codes have.
func codeRefusal(p *Problem, attempts *int) error {
	switch {
	case p.Kind == "code-incorrect" && attempts != nil:
		return &CodeIncorrect{AttemptsLeft: *attempts, RequestID: p.RequestID}
	case p.Kind == "code-expired":
		return ErrCodeExpired
	}
	return p
}

// VerifyCode checks a code that mailgate made and mailed, by a send without a Purpose: nil if
// and only if it is right.
// The right code is right once. A wrong one is a [CodeIncorrect]; where there is none to
// check the error is [ErrCodeExpired], and where too many were wrong a [Wait]. A Problem of
// kind [StoreUnavailable] may have cost a guess, so it is for the visitor to try again.
func (c *Client) VerifyCode(ctx context.Context, email, code string) error {
	return c.verify(ctx, guessJSON{Email: email, Code: code})
}

// VerifyCodeFor is [Client.VerifyCode] for a code that was sent with this [Send.Purpose]. One
// that was sent with another, or with none, is a [CodeIncorrect]. A purpose that no send can have,
// as an empty one, is a Problem of kind [Invalid].
func (c *Client) VerifyCodeFor(ctx context.Context, email, code, purpose string) error {
	return c.verify(ctx, guessJSON{email, code, &purpose})
}

func (c *Client) verify(ctx context.Context, guess guessJSON) error {
	q := question{doing: "checking a code", method: http.MethodPost, path: "/verify-code", body: guess, counts: true}
	_, err := c.ask(ctx, q, &verifiedJSON{})
	return err
}

type guessJSON struct {
	Email   string  `json:"email"`
	Code    string  `json:"code"`
	Purpose *string `json:"purpose,omitempty"`
}

type verifiedJSON struct {
	Verified bool `json:"verified"`
}

func (j *verifiedJSON) whole() bool { return j.Verified }
