package client_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

const key = "Hush-7f3b-9d21-c460"

// server is a mailgate process with a relay that keeps what it is sent.
type server struct {
	URL   string
	relay *sandbox.Server
}

var (
	theServer = sync.OnceValue(startServer)
	stopAll   = func() {}
)

func TestMain(m *testing.M) {
	code := m.Run()
	stopAll()
	os.Exit(code)
}

// startServer builds mailgate and starts it with the default tiers and the action reply.
func startServer() server {
	dir := must(os.MkdirTemp("", "mailgate-client"))
	stopAll = func() { os.RemoveAll(dir) }
	binary, rules := filepath.Join(dir, "mailgate"), filepath.Join(dir, "rules.yaml")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/mailgate").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building mailgate: %v\n%s", err, out))
	}
	must(0, os.WriteFile(rules, []byte("actions:\n  - name: reply\n    limit: minute=1/60s\n"), 0o600))
	relay := must(sandbox.Start(sandbox.Options{}))
	cmd := exec.Command(binary, "serve")
	cmd.Env = []string{
		"MAILGATE_LISTEN=127.0.0.1:0", "MAILGATE_DATA_DIR=" + filepath.Join(dir, "data"), "MAILGATE_RULES=" + rules,
		"MAILGATE_SMTP_URL=" + relay.URL(), "MAILGATE_API_KEYS=app:" + key, "MAILGATE_FROM=Acme <no-reply@acme.example>",
	}
	log := must(cmd.StderrPipe())
	must(0, cmd.Start())
	stopAll = func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		relay.Close()
		os.RemoveAll(dir)
	}
	served := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				served <- line.Address
			}
		}
		close(served)
	}()
	select {
	case address := <-served:
		if address != "" {
			return server{URL: "http://" + address, relay: relay}
		}
	case <-time.After(time.Minute):
	}
	stopAll()
	panic("mailgate does not serve")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// mails returns the texts sent to an address.
func (s server) mails(to string) (texts []string) {
	for _, mail := range s.relay.List() {
		if len(mail.To) == 1 && strings.EqualFold(mail.To[0], to) {
			texts = append(texts, mail.Text)
		}
	}
	return texts
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// code returns the one in the first mail to an address.
func (s server) code(to string) string { return sixDigits.FindString(s.mails(to)[0]) }

var addresses atomic.Int64

// newAddress returns an address that was never mailed.
func newAddress() string { return fmt.Sprintf("alice.liddell.%d@example.com", addresses.Add(1)) }

// newClient returns a client whose pauses are short.
func newClient(t testing.TB, url string) *client.Client {
	c := must(client.New(url, key))
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
	proxy := httputil.NewSingleHostReverseProxy(must(url.Parse(target)))
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
