package oauth

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	mostAnswerBytes = 64 << 10
	// mostTokenBytes is what fits into a line of SMTP's AUTH, which is 12,288 at most.
	mostTokenBytes = 8 << 10

	longestMS = 24 * 60 * 60 * 1000 // that a token is kept
	unsaidMS  = 5 * 60 * 1000       // where the server does not say how long it is good
	leewayMS  = 60 * 1000           // before its end another is asked for
)

// newClient asks each time anew, as that is once an hour. It goes where it was told to and
// nowhere else: a form with secrets must not follow a redirect. A handshake goes on by
// itself when who asked has given up, so it has an end of its own.
func newClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    timeout,
			MaxResponseHeaderBytes: mostAnswerBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A Refusal is an answer of the token server without a token in it. Its text has the
// server's own words, but no secret and no address.
type Refusal struct{ words string }

// Error implements error.
func (r *Refusal) Error() string { return r.words }

// answer is what a token server says, as far as it matters here.
type answer struct {
	Token       string      `json:"access_token"`
	Type        string      `json:"token_type"`
	Seconds     json.Number `json:"expires_in"` // some put it in quotes
	Error       string      `json:"error"`
	Description string      `json:"error_description"`
}

// ask asks the token server once, and says for how many milliseconds the token is good.
func (t *Tokens) ask(ctx context.Context) (token string, goodMS int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	form := strings.NewReader(t.grant.form().Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.grant.server.String(), form)
	if err != nil {
		return "", 0, errors.New("its URL cannot be asked")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	response, err := t.client.Do(request)
	if err != nil {
		return "", 0, unasked(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswerBytes+1))
	if err != nil {
		return "", 0, unasked(err)
	}
	var said answer
	if len(text) > mostAnswerBytes || json.Unmarshal(text, &said) != nil {
		said = answer{}
	}
	if response.StatusCode != http.StatusOK || !said.isToken() {
		return "", 0, t.grant.refusal(response.StatusCode, said)
	}
	return said.Token, said.goodMS(), nil
}

// unasked is an error of the network. Any other may quote the server, or the proxy with its
// password, and is not passed on.
func unasked(err error) error {
	if failure, ok := errors.AsType[*url.Error](err); ok {
		err = failure.Err // without the URL
	}
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &op) || errors.As(err, &certificate) {
		return err
	}
	return errors.New("it could not be asked, or what it answers is not HTTP")
}

// isToken says whether there is a token that can stand in a line to the relay.
func (a answer) isToken() bool {
	return a.Token != "" && len(a.Token) <= mostTokenBytes && (a.Type == "" || strings.EqualFold(a.Type, "Bearer")) &&
		!strings.ContainsFunc(a.Token, func(c rune) bool { return c <= ' ' || c > '~' })
}

// goodMS is how long the token may be used: until shortly before its end, so that it
// does not end on its way.
func (a answer) goodMS() int64 {
	seconds, err := a.Seconds.Int64()
	if err != nil || seconds <= 0 {
		return unsaidMS
	}
	whole := min(seconds, longestMS/1000) * 1000
	return max(whole-leewayMS, whole/2)
}

// refusal words an answer: "401 invalid_client: …". What the server says beside the
// status is left out where it repeats a secret.
func (g Grant) refusal(status int, said answer) *Refusal {
	words := strings.Fields(strings.Trim(said.Error+": "+said.Description, ": "))
	for i, word := range words {
		if strings.Contains(word, "@") {
			words[i] = "***"
		}
	}
	text := strings.Join(words, " ")
	switch {
	case text == "":
		text = "without a token that can be used"
	case g.isToldIn(said.Error + " " + said.Description):
		text = "with a text that repeats a secret"
	}
	return &Refusal{fmt.Sprintf("%d %s", status, text)}
}
