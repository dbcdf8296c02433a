package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// A Client calls mailgate and passes its answers on unchanged. Your own back end uses the
// package client, which parses the answers.
type Client struct {
	URL      string // http://127.0.0.1:8080
	APIKey   string // the secret of one of MAILGATE_API_KEYS
	AdminKey string // the secret of one of MAILGATE_ADMIN_KEYS; only Reset shows it
	HTTP     *http.Client
}

// An Answer is what mailgate said: the status, and the JSON that came with it. One that was
// given again under a click has "replayed": true in it, which the countdown looks for.
type Answer struct {
	Status int
	Body   json.RawMessage
}

// SendCode asks mailgate to make a code and mail it. The status is 200 when a relay has
// accepted the mail, 429 when the mailbox has to wait; the body then says for what and how
// long. The click stands for what the visitor did: asked again with the same one, mailgate
// gives the first answer and sends no second mail. So where no answer came it is asked
// once more.
func (c *Client) SendCode(ctx context.Context, click, email, locale string) (Answer, error) {
	send := func() (Answer, error) {
		return c.do(ctx, http.MethodPost, "/send-code", c.APIKey, click, struct {
			Email  string `json:"email"`
			Locale string `json:"locale,omitempty"`
		}{email, locale})
	}
	answer, err := send()
	if err != nil && click != "" {
		return send()
	}
	return answer, err
}

// VerifyCode has checked what the visitor typed: 200 if it is the code, 422 with the
// attempts that are left if it is another, 410 if there is none any more, 429 if there
// were too many guesses.
func (c *Client) VerifyCode(ctx context.Context, email, code string) (Answer, error) {
	return c.do(ctx, http.MethodPost, "/verify-code", c.APIKey, "", struct {
		Email string `json:"email"`
		Code  string `json:"code"`
	}{email, code})
}

// Mailbox asks for the limits of a mailbox, without sending.
func (c *Client) Mailbox(ctx context.Context, email string) (Answer, error) {
	return c.do(ctx, http.MethodGet, "/mailboxes/"+url.PathEscape(email), c.APIKey, "", nil)
}

// Reset resets a mailbox, as an operator would.
func (c *Client) Reset(ctx context.Context, email, reason string) (Answer, error) {
	return c.do(ctx, http.MethodPost, "/admin/mailboxes/"+url.PathEscape(email)+"/reset", c.AdminKey, "", struct {
		Reason string `json:"reason"`
	}{reason})
}

// maxAnswer is far more than any answer of mailgate.
const maxAnswer = 64 << 10

func (c *Client) do(ctx context.Context, method, path, key, once string, question any) (Answer, error) {
	var body io.Reader = http.NoBody
	if question != nil {
		text, err := json.Marshal(question)
		if err != nil {
			return Answer{}, fmt.Errorf("writing the question: %w", err)
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return Answer{}, fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	if question != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if once != "" {
		request.Header.Set("Idempotency-Key", once)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("asking mailgate: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return Answer{}, fmt.Errorf("reading mailgate's answer: %w", err)
	}
	if response.Header.Get("Idempotent-Replayed") == "true" {
		// It tells the wait of an earlier moment; with this the countdown asks for that of now.
		text = bytes.Replace(text, []byte("{"), []byte(`{"replayed":true,`), 1)
	}
	if !json.Valid(text) {
		return Answer{}, errors.New("mailgate's answer is not JSON")
	}
	return Answer{response.StatusCode, text}, nil
}
