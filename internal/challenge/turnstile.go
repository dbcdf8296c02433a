package challenge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Turnstile is the challenge of Cloudflare, whose tokens are checked by Verifier.
type Turnstile struct {
	Sitekey  string
	Secret   string
	Hosts    []string // of the pages that show it
	Verifier string   // empty for Cloudflare's
}

const (
	verifier    = "https://challenges.cloudflare.com/turnstile/v0/siteverify"
	verifyTime  = 2 * time.Second // for all of it
	maxVerdict  = 16 << 10
	tokenLength = 2048 // of the longest token
	maxAsking   = 16   // questions at once, so that a silent verifier keeps few requests waiting
)

// newClient follows no redirect, which could lead anywhere with the secret.
func newClient() *http.Client {
	return &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// verdict is the answer of the verifier.
type verdict struct {
	Success  bool      `json:"success"`
	Errors   []string  `json:"error-codes"`
	Hostname string    `json:"hostname"`
	Time     time.Time `json:"challenge_ts"`
}

// faults are the error codes of an answer that says nothing of the token.
var faults = []string{"internal-error", "missing-input-secret", "invalid-input-secret", "bad-request"}

// check asks the verifier. A repeated question with the same key gets the same answer, and any other is refused by
// the verifier, so a token serves one mailbox.
func (t *Turnstile) check(ctx context.Context, client *http.Client, token string, whom For, key string, now time.Time) error {
	if token == "" || len(token) > tokenLength {
		return fmt.Errorf("%w: this is no token", ErrUnsolved)
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	v, err := t.ask(ctx, client, url.Values{"secret": {t.Secret}, "response": {token}, "idempotency_key": {key}}, whom)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrVerifier, err)
	case !v.Success && slices.ContainsFunc(v.Errors, func(code string) bool { return slices.Contains(faults, code) }):
		return fmt.Errorf("%w: it says %s", ErrVerifier, v.Errors[0])
	case !v.Success:
		return fmt.Errorf("%w: the verifier refuses the token", ErrUnsolved)
	case !slices.ContainsFunc(t.Hosts, func(host string) bool { return strings.EqualFold(host, v.Hostname) }):
		return fmt.Errorf("%w: it was solved on a page of another host", ErrUnsolved)
	case now.Sub(v.Time).Abs() > 2*Life*time.Millisecond: // the verifier may remember it for longer than we do
		return fmt.Errorf("%w: it was solved too long ago", ErrUnsolved)
	}
	return nil
}

func (t *Turnstile) ask(ctx context.Context, client *http.Client, form url.Values, whom For) (v verdict, err error) {
	if whom.Client.IsValid() {
		form.Set("remoteip", whom.Client.String())
	}
	at := t.Verifier
	if at == "" {
		at = verifier
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return v, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return v, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 && response.StatusCode != http.StatusBadRequest {
		return v, fmt.Errorf("its status is %d", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxVerdict+1))
	if err == nil && len(text) > maxVerdict {
		err = errors.New("its answer is too large")
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

// uuid derives the key under which the verifier is asked about a token for a mailbox.
func (i *Issuer) uuid(token, mailbox string) string {
	b := i.mac.Sum("idempotency", token, mailbox)
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // a UUID of version 8
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
