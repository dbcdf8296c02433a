package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/servertest"
)

// leaksNothing fails the test if an error has the key or the address in its message.
func leaksNothing(t testing.TB, err error) {
	t.Helper()
	text := err.Error()
	for _, hidden := range []string{key, email, "liddell", "%40", "\n"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%q is in the error %q", hidden, text)
		}
	}
	if len(text) > 1000 {
		t.Errorf("the error has %d bytes", len(text))
	}
}

// A server that says everything back which it was asked, wherever something can be said,
// gets nothing of it into an error.
func TestErrorsLeakNothing(t *testing.T) {
	for _, status := range []int{200, 307, 400, 401, 404, 409, 410, 422, 429, 500, 502, 503, 504} {
		for _, kind := range []string{"urn:mailgate:problem:", "https://iana.org/assignments/http-problem-types#quota-exceeded", "urn:mailgate:problem:invalid", "about:blank"} {
			server := httptest.NewServer(echo(status, kind))
			c, _ := asking(t, server.URL, client.Options{Attempts: 2})
			for _, name := range callNames() {
				if err := calls[name](t.Context(), c); err == nil {
					t.Errorf("%s took %d %s for a yes", name, status, kind)
				} else {
					leaksNothing(t, err)
				}
			}
			server.Close()
		}
	}
}

// echo answers with what it was asked, in every field there is.
func echo(status int, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing is not said back
		path, _ := url.PathUnescape(r.RequestURI)
		all := email + " " + path + " " + r.Header.Get("Authorization") + "\n" + string(body)
		field := map[string]string{"field": all, "reason": all, "detail": all}
		said := kind
		if kind == "urn:mailgate:problem:" {
			said += all
		}
		for _, name := range []string{"X-Request-Id", "Retry-After", "Location"} {
			w.Header().Set(name, strings.ReplaceAll(all, "\n", " "))
		}
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]any{
			"type": said, "title": all, "detail": all, "rule": all, "limit": all, "id": all, "status": all,
			"wait_ms": 1, "retry_at": "2026-11-20T12:01:00.000Z", "server_time": "2026-11-20T12:01:00.000Z",
			"errors": []any{field, field, field, field, field, field, field, field, field, field}, "smtp": map[string]any{"code": 550, "message": all},
			"violated-policies": []string{all},
		})
	}
}

// Nor does what is not even HTTP.
func TestErrorsQuoteNothing(t *testing.T) {
	for name, answer := range map[string]func(head string) string{
		"no HTTP":   func(head string) string { return email + " " + head },
		"no status": func(head string) string { return "HTTP/1.1 " + email + "\r\n\r\n" },
		"no header": func(head string) string { return "HTTP/1.1 200 OK\r\n" + email + "\r\n\r\n" },
		"no length": func(head string) string { return "HTTP/1.1 200 OK\r\nContent-Length: " + email + "\r\n\r\n" },
		"no chunk": func(head string) string {
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + email + "\r\n"
		},
		"no coding":   func(head string) string { return "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + email + "\r\n\r\n" },
		"nothing":     func(head string) string { return "" },
		"another yes": func(head string) string { return "HTTP/1.1 204 " + email + "\r\n\r\n" },
		"not gzip": func(head string) string {
			return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain"
		},
		"switched":     func(head string) string { return "HTTP/1.1 101 " + email + "\r\n\r\n" },
		"early hints?": func(head string) string { return "HTTP/1.1 103 " + email + "\r\n\r\n" },
	} {
		c, _ := asking(t, raw(t, answer), client.Options{Attempts: 1})
		for _, call := range callNames() {
			if err := calls[call](t.Context(), c); err == nil {
				t.Errorf("%s took %s for a yes", call, name)
			} else {
				leaksNothing(t, err)
			}
		}
	}
}

// Nor does what New is given.
func TestNewRefuses(t *testing.T) {
	for _, base := range []string{"", "mailgate.internal", "ftp://mailgate.internal", "https://", "https://user:" + key + "@mailgate.internal", "https://h/?key=" + key, "https://h/#a", "https://h:port/", "http://h\n" + key, "/send"} {
		if _, err := client.New(base, key, client.Options{}); err == nil {
			t.Errorf("%q was taken", base)
		} else {
			leaksNothing(t, err)
		}
	}
	for _, secret := range []string{key + "\r\nX: y", "a b", "käse", "\x00", "a\x7f"} {
		if _, err := client.New("https://mailgate.internal", secret, client.Options{}); err == nil {
			t.Errorf("%q was taken", secret)
		} else if leaksNothing(t, err); strings.Contains(err.Error(), secret) {
			t.Error(err)
		}
	}
	if _, err := client.New("https://mailgate.internal", "!~", client.Options{}); err != nil {
		t.Error(err)
	}
	for _, options := range []client.Options{{Attempts: -1}, {Timeout: -1}, {MaxPause: -1}} {
		if _, err := client.New("https://mailgate.internal", key, options); err == nil {
			t.Errorf("%+v was taken", options)
		}
	}
}

// The key is for one server: a redirect is not followed.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := play(t, line{status: 200, body: sentBody})
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := play(t, foreign(status, map[string]string{"Location": elsewhere.URL + "/send-code"}))
		c, _ := asking(t, server.URL, client.Options{})
		for _, name := range callNames() {
			if err := calls[name](t.Context(), c); kindOf(err) != "foreign" {
				t.Errorf("%d: %v", status, err)
			}
		}
	}
	if got := elsewhere.questions(); len(got) > 0 {
		t.Errorf("elsewhere was asked %+v", got)
	}
}

// Nor is it for a proxy that the environment names. A process reads its environment for
// that only once, so this is asked in one of its own.
func TestTheEnvironmentsProxyIsNotAsked(t *testing.T) {
	if servertest.ChildDir() != "" {
		// That refuses at once, and is no loopback by its name, for which no proxy is ever asked.
		c, _ := asking(t, "http://0.0.0.0:1", client.Options{Attempts: 1})
		if err := calls["send"](t.Context(), c); kindOf(err) != "not asked" {
			t.Error(err)
		}
		return
	}
	proxy := play(t, line{status: 200, body: sentBody})
	child := servertest.Child(t, t.TempDir())
	child.Env = append(child.Env, "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	out, err := child.Output()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) || len(proxy.questions()) > 0 {
		t.Errorf("the proxy was asked %d times: %v\n%s", len(proxy.questions()), err, out)
	}
}

// FuzzAnswer reads answers of any kind: none is taken for a yes that is not one, and none
// gets into an error.
func FuzzAnswer(f *testing.F) {
	f.Add(200, sentBody, "1")
	f.Add(429, waitBody, "60")
	f.Add(422, problem(422, "invalid").body, "-1")
	f.Add(422, `{"type":"urn:mailgate:problem:code-incorrect","attempts_left":4}`, "99999999999999999999")
	f.Add(503, `{"type":"urn:mailgate:problem:\n`+email+`","errors":[{"field":"`+email+`"}]}`, "Fri, 20 Nov 2026 12:00:00 GMT")
	f.Fuzz(func(t *testing.T, status int, body, retryAfter string) {
		if status < 200 || status > 599 {
			return // no answer has such a status
		}
		c, _ := asking(t, "http://mailgate.invalid", client.Options{Attempts: 1, Transport: always(status, body, retryAfter)})
		for _, name := range callNames() {
			err := calls[name](t.Context(), c)
			if err == nil && status != 200 {
				t.Errorf("%s took %d %q for a yes", name, status, body)
			}
			if err != nil && strings.ContainsAny(err.Error(), "@\n") {
				t.Errorf("%q", err)
			}
		}
	})
}

// always is a transport that has one answer.
func always(status int, body, retryAfter string) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Status: fmt.Sprint(status), Request: r, ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
