package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest"
)

// What an operator sees of a relay that is logged in to with tokens: that it is so, what
// is wrong with it, and no secret.
func TestOAuth(t *testing.T) {
	const token = "eyJ0eXAi.token.of-the-relay"
	relay := mailtest.Start(t, mailtest.Options{})
	relay.TakeToken(t, token)
	good := func(w http.ResponseWriter, _ int) { mailtest.GiveToken(w, token, 3600) }
	wrong := func(w http.ResponseWriter, _ int) { mailtest.GiveToken(w, "another.token", 3600) }
	none := func(w http.ResponseWriter, _ int) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"invalid_client","error_description":"AADSTS7000222: The secret ` + mailtest.ClientSecret[:3] + `\u001b[2J has expired"}`))
	}
	bad := write(t, t.TempDir()+"/bad.yaml", "token_url: https://login.example\nclient_secret: "+mailtest.ClientSecret)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, int)
		file   string // in place of one for that server
		args   string
		status int
		want   string
	}{
		"check-config":           {good, "", "check-config", exitOK, "smtp://" + relay.Addr + "?oauth=***"},
		"accepted":               {good, "", "test-mail alice@example.com", exitOK, "accepted by " + relay.Addr + " with OAuth: 250"},
		"the token is refused":   {wrong, "", "test-mail alice@example.com", exitFailure, "at AUTH: 535: the relay refuses the token that the token server gave: Incorrect authentication data\n"},
		"no token":               {none, "", "test-mail alice@example.com", exitFailure, ": 401 invalid_client: AADSTS7000222: The secret s3c [2J has expired\n"},
		"a file with a mistake":  {good, bad, "check-config", exitMisusage, "mailgate: MAILGATE_SMTP_URL: relay URL: oauth: client_id is missing\n"},
		"a file that is nowhere": {good, bad + ".gone", "check-config", exitMisusage, "mailgate: MAILGATE_SMTP_URL: relay URL: oauth: there is no such file\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := c.file
			if file == "" {
				file = mailtest.StartTokens(t, c.answer).File(t)
			}
			u := url.URL{Scheme: "smtp", User: url.User(relay.User), Host: relay.Addr, RawQuery: url.Values{"ca": {relay.CA}, "oauth": {file}}.Encode()}
			status, stdout, stderr := run(t, settingsFor(u.String()), strings.Fields(c.args)...)
			if said := stdout + stderr; status != c.status || !strings.Contains(said, c.want) {
				t.Errorf("status %d: %swant %d: %s", status, said, c.status, c.want)
			}
			for _, hidden := range []string{mailtest.ClientSecret, token, "another.token", "\x1b"} {
				if strings.Contains(stdout+stderr, hidden) {
					t.Errorf("it shows %q: %s%s", hidden, stdout, stderr)
				}
			}
		})
	}
}

// The token server is asked by way of HTTPS_PROXY, whose password is shown to nobody.
func TestOAuthByProxy(t *testing.T) {
	relay := mailtest.Start(t, mailtest.Options{})
	relay.TakeToken(t, "a.token.that.nobody.gets")
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	file := write(t, t.TempDir()+"/oauth.yaml", "token_url: https://login.example/token\nclient_id: a\nclient_secret: b")
	u := url.URL{Scheme: "smtp", User: url.User(relay.User), Host: relay.Addr, RawQuery: url.Values{"ca": {relay.CA}, "oauth": {file}}.Encode()}
	p := launch(t, settingsFor(u.String(), "HTTPS_PROXY=http://user:"+secret+"@"+proxy.Listener.Addr().String()), "test-mail", "alice@example.com")
	status := p.end(t)
	if said := p.log.String(); status != exitFailure || !strings.HasSuffix(said, "the token server login.example: it could not be asked, or answered without a token that can be used\n") {
		t.Errorf("status %d: %s", status, said)
	}
	if len(asked) != 1 || <-asked != "CONNECT login.example:443" {
		t.Error("the proxy was not asked")
	}
}
