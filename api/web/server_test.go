package web_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/smtp"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/demo"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/verify"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	adminKey = "the-key-of-an-operator"
	apiKey   = "the-key-of-an-application"
)

// A server is all of mailgate, with the pages of mailgate dev in front.
type server struct {
	t       *testing.T
	URL     string
	limiter throttle.Historian
	relay   *sandbox.Server
	ahead   atomic.Int64 // how far its clock is ahead of the machine's, in milliseconds
}

// newServer starts a server on one machine. change may be nil.
func newServer(t *testing.T, change func(*api.Options)) *server {
	t.Helper()
	return startServer(t, nil, change)
}

// newServerOnRedis starts a server whose mailboxes are in a Redis of its own.
func newServerOnRedis(t *testing.T, change func(*api.Options)) (*server, *redistest.Server) {
	t.Helper()
	redis := redistest.Alone(t)
	return startServer(t, redis, change), redis
}

func (s *server) now() int64 { return time.Now().UnixMilli() + s.ahead.Load() }

func startServer(t *testing.T, redis *redistest.Server, change func(*api.Options)) *server {
	t.Helper()
	s := &server{t: t}
	store := must(cache.Open(cache.Options{Now: s.now}))(t)
	t.Cleanup(func() { store.Close() })
	if redis != nil {
		s.limiter = must(cluster.New(redis.Client(), "test", throttle.DefaultPolicy()))(t)
	} else {
		s.limiter = local.New(store.Table("mailboxes"), throttle.DefaultPolicy(), s.now)
	}
	set := must(rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: s.limiter, Exact: true}))(t)
	s.relay = must(sandbox.Start(sandbox.Options{}))(t)
	t.Cleanup(func() { s.relay.Close() })
	relays := must(relay.New([]relay.URL{must(relay.ParseURL(s.relay.URL()))(t)}, relay.Options{}))(t)
	t.Cleanup(func() { relays.Close(context.Background()) })
	templates := must(message.LoadTemplates(nil, "en"))(t)
	composer := must(message.NewComposer(must(message.ParseSender("Acme <no-reply@acme.example>"))(t), templates))(t)
	guesses := local.New(store.Table("guesses"), must(throttle.ParsePolicy("ten-minutes=5/10m,day=20/24h"))(t), s.now)
	codes := must(verify.New(verify.Options{Store: keyed.Local(store.Table("codes"), s.now), Secret: []byte("a secret that is hard to guess"), Guesses: guesses}))(t)
	requests := idempotency.New(keyed.Local(store.Table("requests"), s.now), 60_000)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.URL = "http://" + listener.Addr().String()
	ended, end := context.WithCancel(context.Background())
	front := demo.New(demo.Options{
		Address: strings.TrimPrefix(s.URL, "http://"), APIKey: apiKey, AdminKey: adminKey,
		Relay: s.relay, Pages: web.FS(), Ended: ended,
	})
	options := api.Options{
		Live: api.Live{Rules: set, Composer: composer}, Relay: delivery.FromRelays(relays), RelayStats: relays.Stats,
		Identity: must(address.NewIdentity(true))(t),
		APIKeys:  must(api.ParseKeys("shop:" + apiKey))(t), AdminKeys: must(api.ParseKeys("alex:" + adminKey))(t),
		Codes: codes, Guesses: guesses, Requests: requests, Secret: []byte("a secret that is hard to guess"), SendDeadline: timeout, StoreTimeout: timeout / 4,
		MaxConnections: 1000, Ready: store.Ready, DegradedSince: func() int64 { return 0 }, OpenAPI: mailgate.OpenAPI, Version: "dev", Now: s.now,
		Log: slog.New(slog.DiscardHandler), Audit: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Fallback: front,
	}
	if change != nil {
		change(&options)
	}
	server := must(api.New(options))(t)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		end() // requests that wait for email
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// sent puts sends on record, each so long ago.
func (s *server) sent(mailbox string, ago ...time.Duration) {
	s.t.Helper()
	for _, past := range ago {
		admission := throttle.Admission{ID: throttle.NewID(), At: time.Now().Add(-past).UnixMilli()}
		if err := s.limiter.Record(context.Background(), mailbox, admission); err != nil {
			s.t.Fatal(err)
		}
	}
}

// post sends a request of an application and returns its answer.
func (s *server) post(path, body string) (status int, answer string) {
	s.t.Helper()
	request := must(http.NewRequest("POST", s.URL+path, strings.NewReader(body)))(s.t)
	request.Header.Set("Authorization", "Bearer "+apiKey)
	request.Header.Set("Content-Type", "application/json")
	response := must(http.DefaultClient.Do(request))(s.t)
	defer response.Body.Close()
	return response.StatusCode, string(must(io.ReadAll(response.Body))(s.t))
}

// sendCode sends a code, or is refused.
func (s *server) sendCode(email string) (answer string) {
	s.t.Helper()
	_, answer = s.post("/send-code", fmt.Sprintf(`{"email":%q}`, email))
	return answer
}

// receives puts an email into the inbox; its subject may be followed by more of it.
func (s *server) receives(to, subject string) {
	s.t.Helper()
	text := "Subject: " + subject + "\r\nContent-Type: text/html\r\n\r\n<p>" + subject + "</p>\r\n"
	if err := smtp.SendMail(s.relay.Addr(), nil, "a@b.example", []string{to}, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// code is the code in the last email to an address; wrongCode is another.
func (s *server) code(email string) (code string) {
	s.t.Helper()
	for _, mail := range s.relay.List() {
		if mail.To[0] == email {
			code = sixDigits.FindString(mail.Text)
		}
	}
	if code == "" {
		s.t.Fatalf("no email with a code to %s", email)
	}
	return code
}

func (s *server) wrongCode(email string) string {
	s.t.Helper()
	if s.code(email) == "000000" {
		return "000001"
	}
	return "000000"
}

// must returns a value, or ends the test with its error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
