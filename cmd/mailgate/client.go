package main

import (
	"bytes"
	"cmp"
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
	return `Asks /readyz of the node at MAILGATE_URL, or else at MAILGATE_OPS_LISTEN or, if that is not set, MAILGATE_LISTEN on this machine. For the HEALTHCHECK of a container.`
}

func (healthcheckCommand) Run(ctx context.Context, c *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout(c)+time.Second)
	defer cancel()
	_, err := ask(ctx, request{url: serverURL(c, c.OpsListen), method: http.MethodGet, path: "/readyz"}, nil)
	return err
}

// A request is one to a running server; the key and the body may be empty.
type request struct {
	url, method, path string
	key, keySetting   string // the first key of that setting
	body              any
	accept            string // the media type of the answer, if not JSON
}

const maxAnswer = 1 << 20

// ask sends a request and returns the body of a 200, which it reads as JSON unless into is nil; a 204 has none.
func ask(ctx context.Context, r request, into any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	response, err := open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", r.url, err)
	}
	if into != nil && json.Unmarshal(body, into) != nil {
		return nil, fmt.Errorf("the answer of %s is not mailgate's: another program uses this address; set MAILGATE_URL", r.url)
	}
	return body, nil
}

// open sends a request and returns the answer, whose body the caller closes, if it is a 200 or a 204.
func open(ctx context.Context, r request) (*http.Response, error) {
	text, err := json.Marshal(r.body)
	outgoing, bad := http.NewRequestWithContext(ctx, r.method, r.url+r.path, bytes.NewReader(text))
	if err != nil || bad != nil {
		return nil, fmt.Errorf("no request can be made of %s", r.url) // the cause has the path, and so the mailbox
	}
	outgoing.Header.Set("Content-Type", "application/json")
	if r.body == nil {
		outgoing.Body, outgoing.ContentLength = nil, 0
	}
	if r.accept != "" {
		outgoing.Header.Set("Accept", r.accept)
	}
	if r.key != "" {
		outgoing.Header.Set("Authorization", "Bearer "+r.key)
	}
	// No proxy and no redirect: the key is for this server only.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(outgoing)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the path
		}
		return nil, fmt.Errorf("no server answers at %s: %w", r.url, err)
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNoContent {
		return response, nil
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // the status says enough without it
	key := ""
	switch {
	case response.StatusCode != http.StatusUnauthorized:
	case r.key == "":
		key = " (no key was sent; set " + r.keySetting + ")"
	default:
		key = " (the key sent is the first of " + r.keySetting + ")"
	}
	return nil, fmt.Errorf("%s answers %d: %s%s", r.url, response.StatusCode, explain(response.StatusCode, body), key)
}

// serverURL returns the url setting, or else an address that a server listens on as seen from
// this machine: prefer, or if it is empty that of listen.
func serverURL(c *config.Config, prefer string) string {
	if c.URL != "" {
		return strings.TrimRight(c.URL, "/")
	}
	return listenURL(cmp.Or(prefer, c.Listen))
}

// listenURL returns an address that a server listens on as seen from this machine.
func listenURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if addr, bad := netip.ParseAddr(host); err != nil || host == "" || bad == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// explain finds the sentences of a problem document: those of single fields, or else the one
// of the whole.
func explain(status int, body []byte) string {
	var problem struct {
		Title, Detail string
		Errors        []struct{ Detail string }
	}
	if json.Unmarshal(body, &problem) != nil || problem.Title == "" {
		return http.StatusText(status)
	}
	var fields []string
	for _, field := range problem.Errors {
		fields = append(fields, field.Detail)
	}
	return strings.TrimSuffix(problem.Title+": "+cmp.Or(strings.Join(fields, " "), problem.Detail), ": ")
}
