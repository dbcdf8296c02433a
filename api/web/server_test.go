package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/cmd/mailgate/demo"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
)

// A server is all of mailgate, with the pages of mailgate dev in front.
type server struct {
	*apitest.Server
	front *httptest.Server
	t     *testing.T
}

// newServer starts a server with its records in memory. change may be nil.
func newServer(t *testing.T, change func(*apitest.Server, *apitest.Options)) *server {
	t.Helper()
	ended, end := context.WithCancel(context.Background())
	front := httptest.NewUnstartedServer(nil)
	started := apitest.Start(func(s *apitest.Server, o *apitest.Options) {
		s.URL, o.Docs.Dev = "http://"+front.Listener.Addr().String(), true
		if change != nil {
			change(s, o)
		}
	})
	with := demo.Options{
		Address: started.Addr, Relay: started.Relay, Ended: ended,
		SMTP: demo.SMTP{Host: "127.0.0.1", Port: "2525", User: "app", Senders: "no-reply@acme.example"},
	}
	if !started.Options.Access.APIKeys.IsZero() {
		with.APIKey, with.AdminKey = apitest.APIKey, apitest.AdminKey
	}
	front.Config.Handler = demo.New(with)
	front.Start()
	t.Cleanup(func() {
		end() // requests that wait for email
		front.Close()
		if err := started.Close(); err != nil {
			t.Error(err)
		}
	})
	return &server{started, front, t}
}

// newServerWithoutKeys is as mailgate dev is by itself.
func newServerWithoutKeys(t *testing.T) *server {
	return newServer(t, func(_ *apitest.Server, o *apitest.Options) {
		o.Access.APIKeys, o.Access.AdminKeys = apikey.Keys{}, apikey.Keys{}
	})
}

// newServerOnRedis starts a server whose mailboxes are in a Redis of its own.
func newServerOnRedis(t *testing.T, change func(*apitest.Options)) (*server, *redistest.Server) {
	t.Helper()
	redis := redistest.Alone(t)
	return newServer(t, func(s *apitest.Server, o *apitest.Options) {
		s.Mailboxes = must.Have(cluster.New(redis.Client(), "test", throttle.DefaultPolicy()))
		if change != nil {
			change(o)
		}
	}), redis
}

// sent puts sends on record, each so long ago.
func (s *server) sent(mailbox string, ago ...time.Duration) {
	s.t.Helper()
	for _, past := range ago {
		admission := throttle.Admission{ID: throttle.NewID(), At: time.Now().Add(-past).UnixMilli()}
		if err := s.Mailboxes.Record(context.Background(), mailbox, admission); err != nil {
			s.t.Fatal(err)
		}
	}
}

// post sends a request of an application and returns its answer.
func (s *server) post(path, body string) (status int, answer string) {
	s.t.Helper()
	return s.postAs(apitest.APIKey, path, body)
}

func (s *server) postAs(key, path, body string) (status int, answer string) {
	s.t.Helper()
	request := must.Have(http.NewRequest("POST", s.URL+path, strings.NewReader(body)))
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response := must.Have(http.DefaultClient.Do(request))
	defer response.Body.Close()
	return response.StatusCode, string(must.Have(io.ReadAll(response.Body)))
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
	s.raw(to, "Subject: "+subject+"\r\nContent-Type: text/html\r\n\r\n<p>"+subject+"</p>\r\n")
}

// wrongCode is another code than that in the last email to an address.
func (s *server) wrongCode(email string) string {
	if s.Code(email) == "000000" {
		return "000001"
	}
	return "000000"
}

// raw puts an email into the inbox as it is.
func (s *server) raw(to, text string) {
	s.t.Helper()
	if err := smtp.SendMail(s.Relay.Addr(), nil, "a@b.example", []string{to}, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}
