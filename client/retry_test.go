package client_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/internal/must"
)

const (
	quotaType = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaBody = `"rule":"mailbox","limit":"minute","wait_ms":54321,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:05.679Z",` +
		`"limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":54321}],"countdown":"t0k3n"`
	sentBody = `{"status":"sent","verified":true,"allowed":true,"released":true,"id":"tWudQhxQ","email":"a@example.com",` + quotaBody + `,"degraded":false}`
)

// reply is one answer of a scripted server. The zero reply breaks the connection.
type reply struct {
	status       int
	body, header string // the header is one line
}

// script answers reply by reply, the last one for ever.
type script struct {
	URL string

	mu      sync.Mutex
	replies []reply
	seen    []request
}

type request struct {
	at              time.Time
	path, key, body string
}

func play(t testing.TB, replies ...reply) *script {
	s := &script{replies: replies}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing shows in the test
	s.mu.Lock()
	now := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	s.seen = append(s.seen, request{time.Now(), r.URL.Path, r.Header.Get("Idempotency-Key"), string(body)})
	s.mu.Unlock()
	if now.status == 0 {
		panic(http.ErrAbortHandler)
	}
	if name, value, ok := strings.Cut(now.header, ": "); ok {
		w.Header().Set(name, value)
	}
	w.WriteHeader(now.status)
	io.WriteString(w, now.body)
}

func (s *script) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// calls are all calls there are.
var calls = map[string]func(context.Context, *client.Client, string) error{
	"send": func(ctx context.Context, c *client.Client, email string) error {
		_, err := c.Send(ctx, client.Mail{Email: email})
		return err
	},
	"verify": func(ctx context.Context, c *client.Client, email string) error {
		return c.Verify(ctx, client.Guess{Email: email, Code: "123456"})
	},
	"mailbox": func(ctx context.Context, c *client.Client, email string) error {
		_, err := c.Mailbox(ctx, email)
		return err
	},
	"take": func(ctx context.Context, c *client.Client, email string) error {
		_, err := c.Take(ctx, "reply", email)
		return err
	},
	"peek": func(ctx context.Context, c *client.Client, email string) error {
		_, _, err := c.Peek(ctx, "reply", email)
		return err
	},
	"release": func(ctx context.Context, c *client.Client, email string) error {
		_, err := c.Release(ctx, "reply", email, "tWudQhxQ")
		return err
	},
}

// outcome is a word for how a call ended, with a question mark where it is uncertain.
func outcome(err error) string {
	word := "granted"
	_, limit := errors.AsType[*client.LimitError](err)
	problem, ok := errors.AsType[*client.APIError](err)
	_, network := errors.AsType[*client.NetworkError](err)
	switch {
	case limit:
		word = "limit"
	case ok:
		word = cmp.Or(string(problem.Kind), fmt.Sprint(problem.Status))
	case network:
		word = "network"
	case errors.Is(err, client.ErrUnreadable):
		word = "unreadable"
	case err != nil:
		word = err.Error()
	}
	if _, uncertain := errors.AsType[*client.UncertainError](err); uncertain {
		word += "?"
	}
	return word
}

// The model of safe retries, for the clients of all languages: for each way in which every attempt
// ends, how many attempts each call makes, with a question mark where the end is uncertain.
func TestRetries_EachAnswer_AgreeWithTheModel(t *testing.T) {
	var model []struct {
		Ends         string
		Status       int
		Body, Header string
		Attempts     map[string]string
	}
	must.Have(0, json.Unmarshal(must.Have(os.ReadFile("testdata/retries.json")), &model))
	for _, row := range model {
		answer := reply{row.Status, row.Body, row.Header}
		for name, call := range calls {
			column := map[string]string{"mailbox": "read", "peek": "read"}[name]
			attempts, uncertain := strings.CutSuffix(row.Attempts[cmp.Or(column, name)], "?")
			want := row.Ends
			if uncertain {
				want += "?"
			}
			s := play(t, answer)
			got := outcome(call(t.Context(), newClient(t, s.URL), "a@example.com"))
			if n := fmt.Sprint(len(s.requests())); got != want || n != attempts {
				t.Errorf("%s, always %+v: %s after %s attempts, want %s after %s", name, answer, got, n, want, attempts)
			}
			if attempts != "4" {
				continue
			}
			s = play(t, answer, answer, reply{200, sentBody, ""})
			if err := call(t.Context(), newClient(t, s.URL), "a@example.com"); err != nil || len(s.requests()) != 3 {
				t.Errorf("%s, twice %+v and then granted: %v after %d attempts", name, answer, err, len(s.requests()))
			}
		}
	}
	huge := play(t, reply{200, strings.Repeat(" ", 1<<20) + sentBody, ""})
	if got := outcome(calls["send"](t.Context(), newClient(t, huge.URL), "x")); got != "unreadable?" {
		t.Errorf("an answer without end: %s", got)
	}
}

// An attempt that may have acted is not forgotten because a later one did not, unless the later
// answer tells of all attempts under the key.
func TestRetries_LostAnswer_UncertainUntilSettled(t *testing.T) {
	limit := func(degraded string) reply {
		return reply{429, `{"type":"` + quotaType + `",` + quotaBody + `,"degraded":` + degraded + `}`, ""}
	}
	for want, last := range map[string]reply{
		"limit":              limit("false"),
		"limit?":             limit("true"),
		"invalid?":           {422, `{"type":"/docs#invalid"}`, ""},
		"recipient-rejected": {422, `{"type":"/docs#recipient-rejected"}`, ""},
		"delivery-unknown":   {504, `{"type":"/docs#delivery-unknown"}`, ""},
		"busy?":              {503, `{"type":"/docs#busy"}`, ""},
		"401?":               {401, "", ""},
	} {
		s := play(t, reply{}, last)
		if got := outcome(calls["send"](t.Context(), newClient(t, s.URL), "a@example.com")); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Repetitions are the same request to the byte, and pause in between.
func TestRetries_Repeated_SameKeySameBodyGrowingPauses(t *testing.T) {
	s := play(t, reply{}, reply{}, reply{503, "", "Retry-After: 1"}, reply{200, sentBody, ""})
	c := newClient(t, s.URL)
	c.MaxPause = 2 * time.Second
	data := map[string]string{"a": "1", "b": "2", "c": "3"}
	must.Have(c.Send(t.Context(), client.Mail{Email: "a@example.com", Data: data, Key: `a"b\c`}))
	seen := s.requests()
	if len(seen) != 4 || seen[0].key != `"a\"b\\c"` {
		t.Fatalf("%+v", seen)
	}
	for i, least := range []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 1400 * time.Millisecond} {
		if i > 0 && (seen[i].key != seen[0].key || seen[i].body != seen[0].body || seen[i].at.Sub(seen[i-1].at) < least) {
			t.Errorf("attempt %d: %+v after %v", i+1, seen[i], seen[i].at.Sub(seen[i-1].at))
		}
	}
	if err := calls["take"](t.Context(), c, "x"); err != nil || s.requests()[4].key == "" {
		t.Errorf("a take has no key: %v", err)
	}
}
