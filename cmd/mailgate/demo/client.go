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
	"strings"
)

// A Client is how the sign-up form reaches mailgate. A back end of yours takes the package
// client instead, which reads the answers as well.
type Client struct {
	URL      string // http://127.0.0.1:8080
	APIKey   string // the secret of one of MAILGATE_API_KEYS
	AdminKey string // the secret of one of MAILGATE_ADMIN_KEYS, for the reset button
	HTTP     *http.Client
}

// form is what the pages send.
type form struct {
	Email  string `json:"email"`
	Code   string `json:"code"`
	Locale string `json:"locale"`
	Click  string `json:"click"` // the same for all requests of one click
}

// An ask is one request to mailgate.
type ask struct{ method, path, key, click, body string }

func (c *Client) sendCode(f form) ask {
	return ask{http.MethodPost, "/send-code", c.APIKey, f.Click, fields("email", f.Email, "locale", f.Locale)}
}

func (c *Client) verifyCode(f form) ask {
	return ask{http.MethodPost, "/verify-code", c.APIKey, "", fields("email", f.Email, "code", f.Code)}
}

func (c *Client) mailbox(f form) ask {
	return ask{http.MethodGet, "/mailboxes/" + url.PathEscape(f.Email), c.APIKey, "", ""}
}

func (c *Client) reset(f form) ask {
	return ask{http.MethodPost, "/admin/mailboxes/" + url.PathEscape(f.Email) + "/reset", c.AdminKey, "", fields("reason", "asked for on the demo page")}
}

// fields are names and values as a JSON object, without the empty values.
func fields(pairs ...string) string {
	body := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			body[pairs[i]] = pairs[i+1]
		}
	}
	text, _ := json.Marshal(body) // strings can always be written
	return string(text)
}

// forward answers a page with what mailgate says, unchanged, so that the countdown can read
// it. A send completes even if the visitor leaves the page; the HTTP client's timeout bounds
// it.
func (c *Client) forward(about func(form) ask) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f, ok := readForm(w, r)
		if !ok {
			return
		}
		status, body, err := c.do(context.WithoutCancel(r.Context()), about(f))
		if err != nil {
			fail(w, http.StatusBadGateway, "mailgate does not answer")
			return
		}
		writeJSON(w, status, json.RawMessage(body))
	}
}

const maxAnswer = 64 << 10

func (c *Client) do(ctx context.Context, a ask) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, a.method, c.URL+a.path, strings.NewReader(a.body))
	if err != nil {
		return 0, nil, fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+a.key)
	request.Header.Set("Content-Type", "application/json")
	if a.click != "" {
		request.Header.Set("Idempotency-Key", a.click)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("asking mailgate: %w", err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the answer: %w", err)
	}
	if response.Header.Get("Idempotent-Replayed") == "true" {
		// The answer has the wait of an earlier moment; this makes the countdown ask for the
		// current one.
		body = bytes.Replace(body, []byte("{"), []byte(`{"replayed":true,`), 1)
	}
	if !json.Valid(body) {
		return 0, nil, errors.New("the answer is not JSON")
	}
	return response.StatusCode, body, nil
}

// readForm accepts JSON only, which no form of another site can send.
func readForm(w http.ResponseWriter, r *http.Request) (f form, ok bool) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		fail(w, http.StatusUnsupportedMediaType, "JSON is expected")
		return f, false
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&f) != nil {
		fail(w, http.StatusBadRequest, "this is not the JSON expected")
		return f, false
	}
	return f, true
}
