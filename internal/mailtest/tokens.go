package mailtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// What a token server knows its client by. Neither may be seen anywhere else.
const (
	ClientSecret = "s3cr3t~/of+the client?"
	RefreshToken = "1//refresh-with-this"
)

// TokenServer is a server of OAuth 2 that gives tokens.
type TokenServer struct {
	URL string

	http  *httptest.Server
	mu    sync.Mutex
	asked []url.Values
}

// StartTokens starts one, and ends it with the test. What it says to the nth who asks,
// counted from one, is up to answer; [GiveToken] is the right one.
func StartTokens(t testing.TB, answer func(w http.ResponseWriter, n int)) *TokenServer {
	s := &TokenServer{}
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		s.mu.Lock()
		s.asked = append(s.asked, r.PostForm)
		n := len(s.asked)
		s.mu.Unlock()
		answer(w, n)
	}))
	s.URL = s.http.URL + "/token"
	t.Cleanup(s.http.Close)
	return s
}

// GiveToken answers as a server that grants the request.
func GiveToken(w http.ResponseWriter, token string, seconds int) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, token, seconds)
}

// Hang answers nothing until the client has gone.
func Hang(w http.ResponseWriter, _ int) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

// Asked returns what it was asked with, each time.
func (s *TokenServer) Asked() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// File returns one for ?oauth= that knows this server.
func (s *TokenServer) File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oauth.yaml")
	if err := os.WriteFile(path, []byte(s.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Text returns what that file says.
func (s *TokenServer) Text() string {
	return fmt.Sprintf("token_url: %s\nclient_id: mailgate\nclient_secret: '%s'\nscope: https://relay.example/.default\n", s.URL, ClientSecret)
}
