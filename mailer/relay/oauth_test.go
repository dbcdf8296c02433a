package relay_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// oauth is address with a token server's file in place of the password.
func (tr trust) oauth(t *testing.T, scheme, host string, tokens *mailtest.TokenServer) string {
	return tr.address(scheme, url.User("mailgate"), host) + "&oauth=" + url.QueryEscape(tokens.File(t))
}

// numbered gives token-1, token-2 and so on, each good for an hour.
func numbered(w http.ResponseWriter, n int) { mailtest.GiveToken(w, fmt.Sprint("token-", n), 3600) }

// told is how XOAUTH2 says a token of the user mailgate.
func told(token string) string {
	return base64.StdEncoding.EncodeToString([]byte("user=mailgate\x01auth=Bearer " + token + "\x01\x01"))
}

func TestExim_Tokens_Accepted(t *testing.T) {
	long := strings.Repeat("eyJ0eXAi.", 700) // what Microsoft gives has some thousand letters
	server := mailtest.Start(t, mailtest.Options{})
	tr := trust{file: server.CA}
	for token, where := range map[string][2]string{"ya29.short": {"smtp", server.Addr}, long: {"smtps", server.SecureAddr}} {
		server.TakeToken(t, token)
		tokens := mailtest.StartTokens(t, func(w http.ResponseWriter, _ int) { mailtest.GiveToken(w, token, 3600) })
		mustSend(t, newRelays(t, steady(), tr.oauth(t, where[0], where[1], tokens)), letter())
	}
	for _, mail := range server.Mails(t) {
		if received, _ := arrived(t, mail.Text); !strings.Contains(received, "esmtpsa") {
			t.Errorf("the server received it otherwise:\n%s", received)
		}
	}
}

// What goes over the wire, where a relay says why before it refuses, and that its next
// connection has another token.
func TestXOAUTH2_Challenge_Answered(t *testing.T) {
	tr := newTrust(t)
	s := fault.Run(t, fault.Script{TLS: tr.good(), At: fault.AUTH, Kind: fault.Challenge, Times: 1})
	relays := newRelays(t, steady(), tr.oauth(t, "smtp", s.Addr(), mailtest.StartTokens(t, numbered)))
	_, err := send(t.Context(), relays, letter())
	checkFailure(t, err, relay.Unavailable, relay.StepAUTH, &relay.Reply{Code: 535, Enhanced: "5.7.8", Message: "not with this token"})
	mustSend(t, relays, letter())
	for i, want := range []string{
		"AUTH XOAUTH2 " + told("token-1") + "\r\n\r\n",
		"AUTH XOAUTH2 " + told("token-2") + "\r\nMAIL",
	} {
		if heard := s.Received()[i]; !bytes.Contains(heard, []byte(want)) {
			t.Errorf("connection %d: %q, want %q", i, heard, want)
		}
	}
}

// Trouble of the token server is the relay's: the spare one takes the email, the breaker
// opens, and closes when the token server is back.
func TestTokenServer_Trouble_NextRelayTakesIt(t *testing.T) {
	t.Parallel()
	tr := newTrust(t)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, int)
		says   string
	}{
		"refuses": {func(w http.ResponseWriter, _ int) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"AADSTS7000222: expired\u001b[2J\u202e"}`)
		}, ": 401 invalid_client: AADSTS7000222: expired [2J"},
		"silent": {mailtest.Hang, ": no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, spare := fault.Run(t, fault.Script{TLS: tr.good()}), fault.Run(t, fault.Script{})
			tokens := mailtest.StartTokens(t, func(w http.ResponseWriter, n int) {
				if n > 2 {
					numbered(w, n)
					return
				}
				c.answer(w, n)
			})
			var log bytes.Buffer
			var now atomic.Int64
			o := steady()
			o.Command, o.Now, o.Breaker.Failures, o.Breaker.Cooldown = ample, now.Load, 2, time.Second
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			relays := newRelays(t, o, tr.oauth(t, "smtp", s.Addr(), tokens), spare.URL())
			for range 3 {
				mustSend(t, relays, letter())
			}
			want := "the token server " + strings.TrimSuffix(strings.TrimPrefix(tokens.URL, "http://"), "/token") + c.says
			if said := log.String(); strings.Count(said, want) != 2 || strings.Count(said, "step=AUTH") != 2 {
				t.Errorf("the log says\n%s\nwant twice %q", said, want)
			}
			now.Add(1000)
			mustSend(t, relays, letter())
			if len(s.Mails()) != 1 || len(spare.Mails()) != 3 || relays.Stats()[0].CircuitOpen {
				t.Errorf("%d and %d emails, %+v", len(s.Mails()), len(spare.Mails()), relays.Stats()[0])
			}
		})
	}
}

// Whatever goes wrong, neither what opens the token server nor what opens the relay is shown.
func TestOAuth_Faults_NoSecretShown(t *testing.T) {
	tr := newTrust(t)
	token := "eyJhbGciOiJub25l.access" + strings.Repeat("x", 600) // too long to be repeated as a whole
	for _, kind := range []fault.Kind{fault.Echo, fault.Challenge, fault.Temporary, fault.Reset, fault.Garbage} {
		t.Run(string(kind), func(t *testing.T) {
			s := fault.Run(t, fault.Script{TLS: tr.good(), At: fault.AUTH, Kind: kind})
			tokens := mailtest.StartTokens(t, func(w http.ResponseWriter, _ int) { mailtest.GiveToken(w, token, 3600) })
			checkSecret(t, steady(), tr.oauth(t, "smtp", s.Addr(), tokens),
				mailtest.ClientSecret, url.QueryEscape(mailtest.ClientSecret), token[:20], told(token)[:20])
		})
	}
}

// A send that waits for its token ends when all is closed.
func TestTokenServer_SilentAtClose_SendEnds(t *testing.T) {
	t.Parallel()
	tr := newTrust(t)
	s := fault.Run(t, fault.Script{TLS: tr.good()})
	tokens := mailtest.StartTokens(t, mailtest.Hang)
	relays := newRelays(t, steady(), tr.oauth(t, "smtp", s.Addr(), tokens))
	failed := make(chan error, 1)
	go func() {
		_, err := send(t.Context(), relays, letter())
		failed <- err
	}()
	servertest.Eventually(t, "a token is waited for", func() bool { return len(tokens.Asked()) == 1 })
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := relays.Close(now); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	checkOutcome(t, <-failed, relay.Unavailable)
}
