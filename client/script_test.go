package client_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
)

const (
	key   = "Hush-7f3b-9d21-c460"
	email = "alice.liddell@example.com"
)

// A line of a script is one answer. The zero line breaks the connection.
type line struct {
	status int
	body   string
	header map[string]string
}

// A script is a server that answers line by line, the last one for ever, and keeps what
// it was asked.
type script struct {
	URL string

	mu    sync.Mutex
	lines []line
	asked []question
}

// A question is what a server was asked.
type question struct {
	method, path, body string
	header             http.Header
}

func play(t testing.TB, lines ...line) *script {
	t.Helper()
	s := &script{lines: lines}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing shows in the test
	s.mu.Lock()
	now := s.lines[0]
	if len(s.lines) > 1 {
		s.lines = s.lines[1:]
	}
	s.asked = append(s.asked, question{r.Method, r.RequestURI, string(body), r.Header.Clone()})
	s.mu.Unlock()
	if now.status == 0 {
		panic(http.ErrAbortHandler) // the connection breaks, and nothing is logged
	}
	for name, value := range now.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(now.status)
	io.WriteString(w, now.body)
}

// questions are all so far.
func (s *script) questions() []question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// A pauses keeps how long a client has paused, which takes no time.
type pauses struct {
	mu  sync.Mutex
	all []time.Duration
}

func (p *pauses) pause(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, d)
	return ctx.Err()
}

// asking makes a client of a URL, whose pauses are kept.
func asking(t testing.TB, url string, options client.Options) (*client.Client, *pauses) {
	t.Helper()
	p := &pauses{}
	if options.Pause == nil {
		options.Pause = p.pause
	}
	c, err := client.New(url, key, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c, p
}

// What a mailgate says, as it is on the wire.
const (
	standing = `"limit":"minute","wait_ms":54321,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:05.679Z",` +
		`"limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":54321}],"degraded":false`
	sentBody = `{"status":"sent","id":"tWudQhxQ","message_id":"<tWudQhxQ.97e4@acme.example>","email":"` + email + `",` +
		`"expires_in_ms":600000,"rule":"mailbox","countdown":"t0k3n",` + standing + `}`
	waitBody = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"The quota is exceeded","status":429,` +
		`"detail":"The limit minute of this mailbox is reached.","rule":"mailbox","countdown":"t0k3n",` + standing + `,"violated-policies":["minute","visitor.hour"]}`
)

// problem is one of mailgate's.
func problem(status int, kind string, header ...string) line {
	l := line{status: status, header: map[string]string{"Content-Type": "application/problem+json"},
		body: `{"type":"urn:mailgate:problem:` + kind + `","title":"No","status":400,"detail":"A sentence."}`}
	for i := 0; i+1 < len(header); i += 2 {
		l.header[header[i]] = header[i+1]
	}
	return l
}

// foreign is an answer of something that is not mailgate.
func foreign(status int, header map[string]string) line {
	return line{status: status, header: header, body: "<html>Bad luck</html>"}
}

// calls are all there are, by name.
var calls = map[string]func(context.Context, *client.Client) error{
	"send": func(ctx context.Context, c *client.Client) error {
		_, err := c.SendCode(ctx, client.Send{Email: email})
		return err
	},
	"mailbox": func(ctx context.Context, c *client.Client) error {
		_, err := c.Mailbox(ctx, email)
		return err
	},
	"verify": func(ctx context.Context, c *client.Client) error { return c.VerifyCode(ctx, email, "123456") },
	"take": func(ctx context.Context, c *client.Client) error {
		_, err := c.Take(ctx, "reply", email)
		return err
	},
	"peek": func(ctx context.Context, c *client.Client) error {
		_, err := c.Peek(ctx, "reply", email)
		return err
	},
	"release": func(ctx context.Context, c *client.Client) error {
		_, err := c.Release(ctx, "reply", email, "tWudQhxQ")
		return err
	},
	"inspect": func(ctx context.Context, c *client.Client) error {
		_, err := c.Inspect(ctx, email)
		return err
	},
	"reset": func(ctx context.Context, c *client.Client) error {
		_, err := c.Reset(ctx, email, "a ticket")
		return err
	},
	"reset action": func(ctx context.Context, c *client.Client) error {
		_, err := c.ResetAction(ctx, "reply", email, "a ticket")
		return err
	},
	"reset rule": func(ctx context.Context, c *client.Client) error {
		_, err := c.ResetRule(ctx, "client-ip", "198.51.100.7", "a ticket")
		return err
	},
}

// callNames are in one order, so that tests run in one.
func callNames() []string { return slices.Sorted(maps.Keys(calls)) }

// kindOf is a word for what an error is.
func kindOf(err error) string {
	var wait *client.Wait
	var p *client.Problem
	var silence *client.NoAnswer
	switch {
	case err == nil:
		return "yes"
	case errors.As(err, &wait):
		return "wait"
	case errors.As(err, &p) && p.Kind == "":
		return "foreign"
	case errors.As(err, &p):
		return string(p.Kind)
	case errors.As(err, &silence) && silence.NotAsked:
		return "not asked"
	case errors.As(err, &silence):
		return "no answer"
	case errors.Is(err, client.ErrAnswer):
		return "unreadable"
	}
	return err.Error()
}
