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

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// The commands here ask a running server, as any other client would.

func showCommand() command {
	return command{
		name: "show", arguments: "<email>",
		summary: "how a mailbox stands with a running server: its limits and its sends",
		teaches: `
Prints, as JSON, what a running server knows of a mailbox: whether it may be sent a
mail now, which limit it waits for and how long, every tier, and the time of each send.
Nothing is changed.

The server is the one at MAILGATE_URL, or else at MAILGATE_LISTEN on this machine. The
first of MAILGATE_ADMIN_KEYS is the key that is shown to it.`,
		run: func(ctx context.Context, c call) error { return c.askOperator(ctx, http.MethodGet, "") },
	}
}

func resetCommand() command {
	return command{
		name: "reset", arguments: "<email>",
		summary: "let a mailbox start afresh, with a running server",
		teaches: `
Makes a running server forget the sends of a mailbox, so that the next one is admitted
at once, and prints how many there were. The server writes it to its audit log.

The server is the one at MAILGATE_URL, or else at MAILGATE_LISTEN on this machine. The
first of MAILGATE_ADMIN_KEYS is the key that is shown to it.`,
		run: func(ctx context.Context, c call) error { return c.askOperator(ctx, http.MethodPost, "/reset") },
	}
}

func healthcheckCommand() command {
	return command{
		name:    "healthcheck",
		summary: "ask a running server whether it can serve; the exit status is the answer",
		teaches: `
Asks /readyz of the server at MAILGATE_URL, or else at MAILGATE_LISTEN on this machine.
The exit status is 0 if it can serve and 1 if not. Made for the HEALTHCHECK of a
container.`,
		run: func(ctx context.Context, c call) error {
			s, _, err := c.settings(0)
			if err != nil {
				return err
			}
			_, err = ask(ctx, s, "", http.MethodGet, "/readyz", 3*time.Second)
			return err
		},
	}
}

// askOperator sends one request about a mailbox and prints the answer.
func (c call) askOperator(ctx context.Context, method, action string) error {
	s, rest, err := c.settings(1)
	if err != nil {
		return err
	}
	path := "/admin/mailboxes/" + url.PathEscape(rest[0]) + action
	answer, err := ask(ctx, s, s.AdminKeys.First(), method, path, 10*time.Second)
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, answer, "", "  "); err != nil {
		return errors.New("the server's answer is not JSON; is it mailgate?")
	}
	_, err = fmt.Fprintln(c.stdout, pretty.String())
	return err
}

// maxAnswer is far more than any answer there is.
const maxAnswer = 1 << 20

// ask sends a request, with a key unless that is empty, and returns the body of a 200.
func ask(ctx context.Context, s *settings.Settings, key, method, path string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	base := serverURL(s)
	request, err := http.NewRequestWithContext(ctx, method, base+path, http.NoBody)
	if err != nil {
		return nil, s.Complain("url", "no request can be made of it")
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	// No proxy, and no redirect: the key is for this server alone.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no server answers at %s: %w", base, withoutURL(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer of %s broke off: %w", base, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d: %s", base, response.StatusCode, explain(response.StatusCode, body))
	}
	return body, nil
}

// serverURL is where a running server is: what the setting says, or the address that
// serve listens on, as seen from this machine.
func serverURL(s *settings.Settings) string {
	if s.URL != "" {
		return strings.TrimRight(s.URL, "/")
	}
	host, port, err := net.SplitHostPort(s.Listen)
	if addr, bad := netip.ParseAddr(host); err != nil || host == "" || bad == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// withoutURL drops the path, and the mailbox in it, from an error of the HTTP client.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// explain finds the sentence in a problem document.
func explain(status int, body []byte) string {
	var problem struct{ Title, Detail string }
	if json.Unmarshal(body, &problem) != nil || problem.Title == "" {
		return http.StatusText(status)
	}
	if problem.Detail == "" {
		return problem.Title
	}
	return problem.Title + ": " + problem.Detail
}
