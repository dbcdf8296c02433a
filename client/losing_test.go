package client_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// A losing is a proxy that loses replies: what was asked for is done, and the connection
// breaks before anybody is told.
type losing struct {
	URL string

	mu       sync.Mutex
	lose     int // how many replies are still to be lost
	statuses []int
}

func newLosing(t testing.TB, target string, lose int) *losing {
	t.Helper()
	p := &losing{lose: lose}
	proxy := httputil.NewSingleHostReverseProxy(need(url.Parse(target)))
	proxy.ModifyResponse = p.reply
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

var errLost = errors.New("the reply is lost")

func (p *losing) reply(r *http.Response) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.statuses = append(p.statuses, r.StatusCode)
	if p.lose == 0 {
		return nil
	}
	p.lose--
	return errLost
}

// seen are the statuses of all replies, lost or not.
func (p *losing) seen() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int(nil), p.statuses...)
}

// forward asks the target what it was asked, and leaves the answer to nobody.
func forward(t testing.TB, target string, body []byte, header http.Header) {
	request := need(http.NewRequest(http.MethodPost, target+"/send-code", bytes.NewReader(body)))
	request.Header = header
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Errorf("the first request: %v", err)
		return
	}
	response.Body.Close()
}
