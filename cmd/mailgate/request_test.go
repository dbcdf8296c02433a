package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// An answer is what a server said to one request.
type answer struct {
	Status int
	Header http.Header
	Raw    string
	Body   struct {
		ID        any
		Email     string
		Limit     string
		Countdown string
		Rule      string
		WaitMS    int64 `json:"wait_ms"`
		Type      string
		Verified  bool
		Degraded  bool
		Sends     []struct{ ID string }
		Left      int `json:"attempts_left"`
		Title     string
		Cleared   int
		Mails     []struct {
			ID      uint64
			Subject string
			To      []string
		}
		Text   string
		Source string
		From   string
	}
}

// ask sends a request with a key and reads the answer whole.
func (c client) ask(method, path, body string) (answer, error) {
	return c.askWith(nil, method, path, body)
}

// once is sendCode with an Idempotency-Key.
func (c client) once(key, email string) (answer, error) {
	return c.askWith(http.Header{"Idempotency-Key": {key}}, http.MethodPost, "/send-code", fmt.Sprintf(`{"email":%q}`, email))
}

// askWith is ask with further headers.
func (c client) askWith(header http.Header, method, path, body string) (answer, error) {
	a, err := c.fetch(header, method, path, body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(a.Raw), &a.Body); err != nil {
		return a, fmt.Errorf("status %d with no JSON: %w", a.Status, err)
	}
	return a, nil
}

// fetch is askWith for an answer that is no JSON, or not that of a sender.
func (c client) fetch(header http.Header, method, path, body string) (a answer, err error) {
	request, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	maps.Copy(request.Header, header)
	request.Host = header.Get("Host") // the URL's, if it is empty
	response, err := c.http.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{Status: response.StatusCode, Header: response.Header, Raw: string(text)}, err
}

// get fetches what a path has.
func (c client) get(t testing.TB, path string) answer {
	t.Helper()
	a, err := c.fetch(nil, http.MethodGet, path, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A client asks one server with one key.
type client struct {
	url, key string
	http     *http.Client
}

// newClient makes a client with connections of its own.
func newClient(t testing.TB, url, key string) client {
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	return client{url, key, &http.Client{Transport: transport, Timeout: patience}}
}

func (c client) sendCode(email string) (answer, error) {
	return c.ask(http.MethodPost, "/send-code", fmt.Sprintf(`{"email":%q}`, email))
}

// must is for tests in which the request has to work.
func (c client) must(t testing.TB, method, path, body string, status int) answer {
	t.Helper()
	a, err := c.ask(method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if a.Status != status {
		t.Fatalf("%s %s: %d, want %d: %+v", method, path, a.Status, status, a.Body)
	}
	return a
}

func (c client) mustSend(t testing.TB, email string, status int) answer {
	t.Helper()
	return c.must(t, http.MethodPost, "/send-code", fmt.Sprintf(`{"email":%q}`, email), status)
}
