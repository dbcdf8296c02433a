package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
)

// A reply is what a server answered to one request.
type reply struct {
	Status int
	Header http.Header
	Raw    string
	Body   struct {
		ID        any
		Limit     string
		Countdown string
		Rule      string
		WaitMS    int64 `json:"wait_ms"`
		Type      string
		Verified  bool
		Degraded  bool
		Sends     []struct{ ID string }
		Left      int `json:"guesses_left"`
		Cleared   int
		Mails     []struct{ ID uint64 }
		To        []string

		Text, Source, From string
	}
}

// A client asks one server with one key.
type client struct {
	url, key string
	http     *http.Client
}

func newClient(t testing.TB, url, key string) client {
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	return client{url, key, &http.Client{Transport: transport, Timeout: patience}}
}

// ask sends a request and reads the whole reply. A body that is not JSON is in Raw only.
func (c client) ask(method, path, body string, header http.Header) (r reply, err error) {
	request, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		return r, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	maps.Copy(request.Header, header)
	request.Host = header.Get("Host") // that of the URL if it is empty
	response, err := c.http.Do(request)
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	r = reply{Status: response.StatusCode, Header: response.Header, Raw: string(text)}
	_ = json.Unmarshal(text, &r.Body)
	return r, err
}

// must is for requests that have to be answered with this status.
func (c client) must(t testing.TB, method, path, body string, status int) reply {
	t.Helper()
	r, err := c.ask(method, path, body, nil)
	if err != nil || r.Status != status {
		t.Fatalf("%s %s: %v, status %d, want %d: %s", method, path, err, r.Status, status, r.Raw)
	}
	return r
}

func (c client) get(t testing.TB, path string) reply {
	t.Helper()
	return must.Get(c.ask("GET", path, "", nil))(t)
}

func bodyFor(email string) string { return fmt.Sprintf(`{"email":%q}`, email) }

func (c client) mustSend(t testing.TB, email string, status int) reply {
	t.Helper()
	return c.must(t, "POST", "/send-code", bodyFor(email), status)
}

// sendOnce sends under an Idempotency-Key.
func (c client) sendOnce(key, email string) (reply, error) {
	return c.ask("POST", "/send-code", bodyFor(email), http.Header{"Idempotency-Key": {key}})
}

// mustVerify checks a code.
func (c client) mustVerify(t testing.TB, email, code string, status int) reply {
	t.Helper()
	return c.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":%q,"code":%q}`, email, code), status)
}

// shows reports whether this line is in the metrics.
func (p *process) shows(t testing.TB, line string) bool {
	t.Helper()
	return strings.Contains(newClient(t, p.URL, "").get(t, "/metrics").Raw, "\n"+line+"\n")
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)
