package api_test

import (
	"net/http"
	"testing"
)

// A browser that asks for / lands on the documentation; a program gets the usual 404.
func TestStart_Root_SendsBrowsersToTheDocs(t *testing.T) {
	r := newRig(t, setup{})
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	browser := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}
	for _, tt := range []struct {
		method, path string
		header       http.Header
		status       int
	}{
		{"GET", "/", browser, 303}, {"GET", "/", http.Header{"Accept": {"*/*"}}, 404}, {"GET", "/", http.Header{}, 404},
		{"POST", "/", browser, 405}, {"GET", "/nowhere", browser, 404},
	} {
		got := r.request(tt.method, tt.path, tt.header, "")
		if location := got.header.Get("Location"); got.status != tt.status || (location == "/docs") != (tt.status == 303) {
			t.Errorf("%s %s with %v: %d to %q, want %d", tt.method, tt.path, tt.header, got.status, location, tt.status)
		}
	}
}
