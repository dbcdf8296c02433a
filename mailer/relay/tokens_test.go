package relay

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest"
)

func tokensOf(t *testing.T, text string, now func() int64) *tokens {
	t.Helper()
	config, err := parseGrant([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return newTokens(*config, time.Minute, now)
}

func (t *tokens) mustGet(tb testing.TB, want string) {
	tb.Helper()
	if got, err := t.get(tb.Context()); got != want || err != nil {
		tb.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// What is asked for, with a client's own credentials and with a refresh token; once for all who
// want the token at that time.
func TestTokens_Ask_Form(t *testing.T) {
	server := mailtest.StartTokens(t, func(w http.ResponseWriter, n int) { mailtest.GiveToken(w, "token", 3600) })
	for _, more := range []string{"", "refresh_token: " + mailtest.RefreshToken} {
		tokens := tokensOf(t, server.Text()+more, func() int64 { return 0 })
		var group sync.WaitGroup
		for range 32 {
			group.Go(func() { tokens.mustGet(t, "token") })
		}
		group.Wait()
	}
	if n := len(server.Asked()); n != 2 {
		t.Fatalf("the token server was asked %d times", n)
	}
	for i, want := range []map[string]string{
		{"grant_type": "client_credentials", "refresh_token": ""},
		{"grant_type": "refresh_token", "refresh_token": mailtest.RefreshToken},
	} {
		asked := server.Asked()[i]
		want["client_id"], want["client_secret"], want["scope"] = "mailgate", mailtest.ClientSecret, "https://relay.example/.default"
		for name, value := range want {
			if asked.Get(name) != value {
				t.Errorf("request %d: %s is %q, want %q", i, name, asked.Get(name), value)
			}
		}
	}
}

// A token is kept until shortly before its end, and not for ever.
func TestTokens_Get_KeptUntilShortlyBeforeItsEnd(t *testing.T) {
	for seconds, kept := range map[int]int64{3600: 3540_000, 120: 60_000, 60: 30_000, 0: 300_000, -1: 300_000} {
		now := int64(0)
		server := mailtest.StartTokens(t, func(w http.ResponseWriter, n int) {
			mailtest.GiveToken(w, strings.Repeat("x", n), seconds)
		})
		tokens := tokensOf(t, server.Text(), func() int64 { return now })
		tokens.mustGet(t, "x")
		now = kept - 1
		tokens.mustGet(t, "x")
		now = kept
		tokens.mustGet(t, "xx")
	}
}

// A token server that repeats secrets, redirects or does not speak HTTP puts no secret into an error
// and gets no second request. A token that cannot stand in a line to the relay is none.
func TestTokens_HostileServer_NoSecretShownAndNoRedirectFollowed(t *testing.T) {
	const none, hidden, strange = " without a usable token", " with a text that repeats a secret", "it does not answer, or its answer has no usable token"
	const address = " with a text that has an address"
	secret, refresh := mailtest.ClientSecret, mailtest.RefreshToken
	elsewhere := mailtest.StartTokens(t, func(w http.ResponseWriter, _ int) { mailtest.GiveToken(w, "token", 3600) })
	refuse := func(description string) string {
		return "HTTP/1.1 401 No\r\nContent-Type: application/json\r\n\r\n" + `{"error":"invalid_client","error_description":"` + description + `"}`
	}
	answers := map[string]string{
		refuse(secret + " is wrong"):                                                                 "401" + hidden,
		refuse("form: " + url.QueryEscape(secret)):                                                   "401" + hidden,
		refuse("it begins with " + refresh[:8]):                                                      "401" + hidden,
		refuse(`user 'a@b.example' is blocked\u001b[2J`):                                             "401" + address,
		strings.Replace(refuse(""), "invalid_client", secret, 1):                                     "401" + hidden,
		"HTTP/1.1 302 Found\r\nLocation: " + elsewhere.URL + "\r\n\r\n":                              "302" + none,
		"HTTP/1.1 308 Moved\r\nLocation: " + elsewhere.URL + "\r\n\r\n" + `{"access_token":"token"}`: "308" + none,
		"220 relay.example ESMTP " + secret + "\r\n":                                                 strange,
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 128<<10) + "\r\n\r\n":                         strange,
		"": strange,
	}
	for _, body := range []string{
		`{"access_token":"a b"}`, `{"access_token":"a\nb"}`, `{"access_token":"ü"}`, `{"access_token":""}`, `{}`, `[]`, `<html>`, ``,
		`{"access_token":"` + strings.Repeat("x", mostTokenBytes+1) + `"}`, `{"access_token":"a","token_type":"mac"}`,
	} {
		answers["HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"+body] = "usable token"
	}
	for answer, want := range answers {
		server := mailtest.StartTokens(t, func(w http.ResponseWriter, _ int) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		})
		tokens := tokensOf(t, server.Text()+"refresh_token: "+refresh, func() int64 { return 0 })
		token, err := tokens.get(t.Context())
		if token != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100q: %q, %v, want %q", answer, token, err, want)
		}
		shown := fmt.Sprintf("%v %+v %#v", err, err, err)
		for _, text := range []string{secret, url.QueryEscape(secret), refresh, "b.example", "\x1b"} {
			if strings.Contains(shown, text) {
				t.Errorf("%.100q: %q is shown: %s", answer, text, shown)
			}
		}
	}
	if asked := elsewhere.Asked(); len(asked) != 0 {
		t.Errorf("a redirect was followed: %v", asked)
	}
}

func TestParseGrant_Wrong_NamesTheLineAndNothingElse(t *testing.T) {
	const good = "token_url: https://login.example/token\nclient_id: a\nclient_secret: hunter2\n"
	for text, says := range map[string]string{
		"":                          "missing",
		"hunter2":                   "line 1",
		good + "hunter2: x":         "line 4",
		good + "client_id: hunter2": "line 4",
		good + "scope: [hunter2]":   "line 4",
		good + "scope: {hunter2":    "line 4",
		"token_url: https://x\nclient_id: hunter2":       "client_secret is missing",
		"client_id: a\nclient_secret: hunter2":           "token_url is missing",
		strings.Replace(good, "https", "http", 1):        "token_url must be",
		strings.Replace(good, "https", "file", 1):        "token_url must be",
		strings.Replace(good, "://", "://u:hunter2@", 1): "token_url must be",
	} {
		_, err := parseGrant([]byte(text))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	if _, err := parseGrant([]byte(strings.Replace(good, "https://login.example", "http://127.0.0.1:80", 1))); err != nil {
		t.Errorf("on loopback: %v", err)
	}
}
