package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/internal/must"
)

const key = apitest.APIKey

// theServer is the one that all tests share.
var theServer = sync.OnceValue(func() *apitest.Server { return apitest.Start(nil) })

var addresses atomic.Int64

// newAddress returns an address that was never mailed.
func newAddress() string { return fmt.Sprintf("alice.liddell.%d@example.com", addresses.Add(1)) }

// newClient returns a client whose pauses are short.
func newClient(t testing.TB, url string) *client.Client {
	c := must.Have(client.New(url, key))
	c.MaxPause = 20 * time.Millisecond
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return c
}

// faults is a proxy in front of mailgate, of which some answers never arrive: what was asked
// is done, and then the connection breaks.
type faults struct {
	URL      string
	lose     atomic.Int64 // how many answers are still to be lost
	requests atomic.Int64
}

func newFaults(t testing.TB, target string, lose int64) *faults {
	f := &faults{}
	f.lose.Store(lose)
	proxy := httputil.NewSingleHostReverseProxy(must.Have(url.Parse(target)))
	proxy.ModifyResponse = func(*http.Response) error {
		f.requests.Add(1)
		if f.lose.Add(-1) >= 0 {
			return errors.New("lost")
		}
		return nil
	}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}
