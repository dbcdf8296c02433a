package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

type healthcheckCommand struct{}

func (healthcheckCommand) Help() string {
	return `Asks /readyz of the server at MAILGATE_URL, or else at MAILGATE_OPS_LISTEN or, if that is not set, MAILGATE_LISTEN on this machine. For the HEALTHCHECK of a container.`
}

func (healthcheckCommand) Run(ctx context.Context, c *config.Config) error {
	_, err := ask(ctx, c, question{method: http.MethodGet, path: "/readyz", ops: true}, storeTimeout(c)+time.Second)
	return err
}

// A question is one request to a running server; the key and the body may be empty.
type question struct {
	method, path    string
	key, keySetting string
	body            any
	ops             bool // for the listener of operations, if there is one
}

// A refusal is an answer other than 200.
type refusal struct {
	base, reason string
	status       int
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answers %d: %s", r.base, r.status, r.reason)
}

const maxAnswer = 1 << 20

// ask sends a request to a running server and returns the body of a 200.
func ask(ctx context.Context, c *config.Config, q question, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	base := serverURL(c, q.ops)
	request, err := newRequest(ctx, base, q)
	if err != nil {
		return nil, c.Complain("url", "no request can be made of it")
	}
	// No proxy and no redirect: the key is for this server only.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the path, which has the mailbox
		}
		return nil, fmt.Errorf("no server answers at %s: %w", base, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", base, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, &refusal{base, explain(response.StatusCode, body), response.StatusCode}
	}
	return body, nil
}

func newRequest(ctx context.Context, base string, q question) (*http.Request, error) {
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, q.method, base+q.path, body)
	if err != nil {
		return nil, err
	}
	if q.key != "" {
		request.Header.Set("Authorization", "Bearer "+q.key)
	}
	if q.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// serverURL is the url setting, or the address of listen or ops-listen as seen from this machine.
func serverURL(c *config.Config, ops bool) string {
	if c.URL != "" {
		return strings.TrimRight(c.URL, "/")
	}
	address := c.Listen
	if ops && c.OpsListen != "" {
		address = c.OpsListen
	}
	host, port, err := net.SplitHostPort(address)
	if addr, bad := netip.ParseAddr(host); err != nil || host == "" || bad == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// explain finds the sentences of a problem document: those of single fields, or else the
// one of the whole.
func explain(status int, body []byte) string {
	var problem struct {
		Title, Detail string
		Errors        []struct{ Detail string }
	}
	if json.Unmarshal(body, &problem) != nil || problem.Title == "" {
		return http.StatusText(status)
	}
	var details []string
	for _, field := range problem.Errors {
		details = append(details, field.Detail)
	}
	if details == nil {
		details = []string{problem.Detail}
	}
	return strings.TrimSuffix(problem.Title+": "+strings.Join(details, " "), ": ")
}
