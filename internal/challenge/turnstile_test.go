package challenge_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/challenge"
)

// cloudflare stands in for the verifier, and answers as its documentation says, also for the published test secrets.
type cloudflare struct {
	mu   sync.Mutex
	used map[string]string // the key that each token was first verified with
	last http.Request
}

func (c *cloudflare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		panic(err)
	}
	c.last = *r
	says := func(status int, success bool, code, host string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"success":%t,"error-codes":[%s],"challenge_ts":%q,"hostname":%q,"action":"","cdata":"","metadata":{"interactive":false}}`,
			success, code, time.UnixMilli(now).UTC().Format("2006-01-02T15:04:05.000Z"), host)
	}
	token, key := r.Form.Get("response"), r.Form.Get("idempotency_key")
	switch r.Form.Get("secret") {
	case "1x0000000000000000000000000000000AA":
		says(200, true, "", "example.com")
	case "2x0000000000000000000000000000000AA":
		says(200, false, `"invalid-input-response"`, "")
	case "3x0000000000000000000000000000000AA":
		says(200, false, `"timeout-or-duplicate"`, "")
	case "own":
		if first, spent := c.used[token]; spent && first != key {
			says(200, false, `"timeout-or-duplicate"`, "")
			return
		}
		c.used[token] = key
		says(200, true, "", "acme.example")
	default:
		says(400, false, `"invalid-input-secret"`, "")
	}
}

func against(t *testing.T, handler http.Handler, secret string, hosts ...string) (*challenge.Issuer, *httptest.Server) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a server that has not read the body does not see that its client leaves
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return issuer(t, ours, &challenge.Turnstile{Sitekey: "site", Secret: secret, Hosts: hosts, Verifier: server.URL}), server
}

const dummy = "XXXX.DUMMY.TOKEN.XXXX"

func TestCheck_Turnstile_AsItsTestKeysSay(t *testing.T) {
	t.Parallel()
	c := &cloudflare{used: map[string]string{}}
	for _, tt := range []struct {
		secret, host string
		want         error
	}{
		{"1x0000000000000000000000000000000AA", "example.com", nil},
		{"1x0000000000000000000000000000000AA", "Example.COM", nil},
		{"1x0000000000000000000000000000000AA", "acme.example", challenge.ErrUnsolved},
		{"2x0000000000000000000000000000000AA", "example.com", challenge.ErrUnsolved},
		{"3x0000000000000000000000000000000AA", "example.com", challenge.ErrUnsolved},
		{"another", "example.com", challenge.ErrVerifier},
	} {
		i, _ := against(t, c, tt.secret, tt.host)
		if offer := i.Offer(whom(alice, ""), now, true); offer.Turnstile["sitekey"] != "site" || i.Offer(whom(alice, ""), now, false).Turnstile != nil {
			t.Errorf("offered: %+v", offer)
		}
		hash, kind, err := i.Check(t.Context(), dummy, whom(alice, "203.0.113.7"), now)
		if !errors.Is(err, tt.want) || kind != "turnstile" || (hash != "") != (err == nil) {
			t.Errorf("%s, %s: %q, %s, %v", tt.secret, tt.host, hash, kind, err)
		}
		if err != nil && strings.Contains(err.Error(), tt.secret) {
			t.Errorf("the error has the secret: %v", err)
		}
	}
}

// A repeated check of a mailbox is answered as the first, and the token is refused for another mailbox.
func TestCheck_Turnstile_OneMailbox(t *testing.T) {
	t.Parallel()
	c := &cloudflare{used: map[string]string{}}
	i, _ := against(t, c, "own", "other.example", "acme.example")
	first, _, err := i.Check(t.Context(), dummy, whom(alice, "203.0.113.7"), now)
	if f := c.last.Form; err != nil || f.Get("remoteip") != "203.0.113.7" || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(f.Get("idempotency_key")) {
		t.Fatalf("%v, asked %v", err, f)
	}
	again, _, err := i.Check(t.Context(), dummy, whom(alice, ""), now)
	if err != nil || again != first || c.last.Form.Has("remoteip") {
		t.Errorf("again: %q, %v", again, err)
	}
	if hash, _, err := i.Check(t.Context(), dummy, whom("bob@example.com", ""), now); hash != "" || !errors.Is(err, challenge.ErrUnsolved) {
		t.Errorf("for another mailbox: %q, %v", hash, err)
	}
	if hash, _, err := i.Check(t.Context(), "other", whom(alice, ""), now+2*challenge.Life+1); hash != "" || !errors.Is(err, challenge.ErrUnsolved) {
		t.Errorf("solved too long ago: %q, %v", hash, err)
	}
	c.last = http.Request{}
	for _, token := range []string{"", strings.Repeat("x", 2049)} {
		if _, _, err := i.Check(t.Context(), token, whom(alice, ""), now); !errors.Is(err, challenge.ErrUnsolved) || c.last.Form != nil {
			t.Errorf("%.9q was asked about: %v", token, err)
		}
	}
}

// A proof of work that is malformed is refused here: Cloudflare is not asked about it.
func TestCheck_MalformedProof_NotAskedAbout(t *testing.T) {
	t.Parallel()
	c := &cloudflare{used: map[string]string{}}
	i, _ := against(t, c, "own", "acme.example")
	p := i.Offer(whom(alice, ""), now, true).ALTCHA
	malformed := map[string]string{"cut off": base64.StdEncoding.EncodeToString([]byte(`{"algorithm":"SHA-256","chall`))}
	for name, number := range map[string]any{"a text": "12", "a fraction": 12.5, "a list": []int{12}, "too large": json.Number("1e30")} {
		malformed[name] = solve(t, p, func(s map[string]any) { s["number"] = number })
	}
	for name, token := range malformed {
		hash, kind, err := i.Check(t.Context(), token, whom(alice, ""), now)
		if hash != "" || kind != "altcha" || !errors.Is(err, challenge.ErrUnsolved) || !strings.Contains(err.Error(), "malformed") || c.last.Form != nil {
			t.Errorf("%s: %q, %s, %v, asked %v", name, hash, kind, err, c.last.Form)
		}
	}
}

// A verifier that does not answer keeps few requests waiting: for the others it has failed at once.
func TestCheck_VerifierSilent_FewWait(t *testing.T) {
	t.Parallel()
	const few = 16
	began, answer, done := make(chan struct{}, 2*few), make(chan struct{}), make(chan error, few)
	i, _ := against(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-answer
		(&cloudflare{used: map[string]string{}}).ServeHTTP(w, r)
	}), "own", "acme.example")
	check := func(token string) error {
		_, _, err := i.Check(context.Background(), token, whom(alice, ""), now)
		return err
	}
	for n := range few {
		go func() { done <- check(fmt.Sprint("token ", n)) }()
	}
	for range few {
		<-began
	}
	if err := check("one more"); !errors.Is(err, challenge.ErrVerifier) || len(began) > 0 {
		t.Errorf("beside %d others: %v", few, err)
	}
	close(answer)
	for range few {
		<-done
	}
	if err := check("the next"); err != nil {
		t.Errorf("after them: %v", err)
	}
}

// A verifier that is at fault costs two seconds at most, and its answer is never read in whole.
func TestCheck_VerifierAtFault_WithinTwoSeconds(t *testing.T) {
	t.Parallel()
	var written int
	lands := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(lands.Close)
	for name, answers := range map[string]http.HandlerFunc{
		"slow": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"slow after its header": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"success":`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"trickling": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, lands.URL, http.StatusTemporaryRedirect)
		},
		"100 MB": func(w http.ResponseWriter, r *http.Request) {
			for range 100 << 10 {
				n, err := w.Write([]byte(strings.Repeat(" ", 1024)))
				written += n
				if err != nil {
					return
				}
			}
		},
		"a page":   func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") },
		"an array": func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "[]") },
		"fails":    func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) },
		"has a fault": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"success":false,"error-codes":["internal-error"]}`)
		},
		"hangs up":     func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"is not there": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, server := against(t, answers, "own", "acme.example")
			if answers == nil {
				server.Close()
			}
			began := time.Now()
			hash, _, err := i.Check(t.Context(), dummy, whom(alice, ""), now)
			if took := time.Since(began); hash != "" || !errors.Is(err, challenge.ErrVerifier) || took > 3*time.Second {
				t.Errorf("%q, %v in %s", hash, err, took)
			}
			if name == "100 MB" {
				server.Close() // its handler has ended
				if written > 20<<20 {
					t.Errorf("%d bytes were taken", written)
				}
			}
		})
	}
}
