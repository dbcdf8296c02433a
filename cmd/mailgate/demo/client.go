package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// A Client asks mailgate. It is the part to copy into a back end.
type Client struct {
	URL      string // http://127.0.0.1:8080
	APIKey   string // the secret of one of MAILGATE_API_KEYS
	AdminKey string // the secret of one of MAILGATE_ADMIN_KEYS; only Reset shows it
	HTTP     *http.Client
}

// An Answer is what mailgate said: the status, and the JSON that came with it.
type Answer struct {
	Status int
	Body   json.RawMessage
}

// SendCode asks mailgate to mail a code of the caller's own making. The status is 200
// when a relay has accepted the mail, 429 when the mailbox has to wait; the body then
// says for what and how long.
func (c *Client) SendCode(ctx context.Context, email, code, locale string) (Answer, error) {
	return c.do(ctx, http.MethodPost, "/send-code", c.APIKey, struct {
		Email  string `json:"email"`
		Code   string `json:"code"`
		Locale string `json:"locale,omitempty"`
	}{email, code, locale})
}

// Mailbox asks how a mailbox stands, without sending.
func (c *Client) Mailbox(ctx context.Context, email string) (Answer, error) {
	return c.do(ctx, http.MethodGet, "/mailboxes/"+url.PathEscape(email), c.APIKey, nil)
}

// Reset lets a mailbox start afresh, as an operator would.
func (c *Client) Reset(ctx context.Context, email, reason string) (Answer, error) {
	return c.do(ctx, http.MethodPost, "/admin/mailboxes/"+url.PathEscape(email)+"/reset", c.AdminKey, struct {
		Reason string `json:"reason"`
	}{reason})
}

// maxAnswer is far more than any answer of mailgate.
const maxAnswer = 64 << 10

func (c *Client) do(ctx context.Context, method, path, key string, question any) (Answer, error) {
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
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("asking mailgate: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || !json.Valid(text) {
		return Answer{}, fmt.Errorf("mailgate's answer cannot be read: %w", err)
	}
	return Answer{response.StatusCode, text}, nil
}
