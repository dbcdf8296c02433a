package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

const (
	formerEventsSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	eventsSecret       = "whsec_SHVzaC03ZjNiLTlkMjEtYzQ2MC1hbmQtbW9yZQ=="
)

// backEnd receives events, and verifies them with the library of Standard Webhooks.
type backEnd struct {
	*httptest.Server
	down     atomic.Bool // refuses
	mu       sync.Mutex
	told     []string          // the type and the data of those that it took, in their order
	bodies   map[string]string // of all, by their id
	repeated int
}

func startBackEnd(t testing.TB) *backEnd {
	b := &backEnd{bodies: map[string]string{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		for _, secret := range []string{formerEventsSecret, eventsSecret} {
			if err == nil {
				err = must.Get(webhooks.NewWebhook(secret))(t).Verify(body, r.Header)
			}
		}
		var event struct {
			Type, Timestamp string
			Data            map[string]any
		}
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		if err != nil {
			t.Errorf("%v: %s", err, body)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		id := r.Header.Get("webhook-id")
		before, again := b.bodies[id]
		if again {
			b.repeated++
		}
		if again && before != string(body) {
			t.Errorf("the event %s is %s, and was %s", id, body, before)
		}
		b.bodies[id] = string(body)
		if b.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		words := event.Type
		for _, name := range []string{"email", "key", "door", "purpose", "rule", "limit", "problem", "reason"} {
			if text, ok := event.Data[name].(string); ok {
				words += " " + text
			}
		}
		b.told = append(b.told, words)
	}))
	t.Cleanup(b.Close)
	return b
}

// waits returns how many events are in the journal.
func (p *process) waits(t testing.TB, n int) {
	t.Helper()
	servertest.Eventually(t, fmt.Sprint(n, " events in the journal"), func() bool { return p.shows(t, fmt.Sprint("mailgate_events_waiting ", n)) })
}

// A back end is told of each kind. What it did not take is posted again after kill -9, under the same id.
func TestEvents_EachKind_SurvivesAKill(t *testing.T) {
	t.Parallel()
	receiver := startBackEnd(t)
	receiver.down.Store(true)
	relay := fault.Run(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "carol@"})
	dir := t.TempDir()
	secrets := servertest.Write(t, filepath.Join(t.TempDir(), "secret"), eventsSecret+"|"+formerEventsSecret+"\n")
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+dir, "MAILGATE_EVENTS_URL="+receiver.URL, "MAILGATE_EVENTS_SECRET_FILE="+secrets,
		"MAILGATE_HOOK_BREVO="+brevoToken, "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0")
	p := startServer(t, environ)
	app, operator := newClient(t, p.URL, apiKey), newClient(t, p.URL, adminKey)
	app.must(t, "POST", "/send-code", `{"email":"Alice@example.com","purpose":"sign-up"}`, 200)
	mail := must.Get(mail.ReadMessage(bytes.NewReader(relay.Mails()[0].Text)))(t)
	app.mustSend(t, "alice@example.com", 429)
	app.mustSend(t, "carol@example.com", 422)
	code := sixDigits.FindString(string(must.Get(io.ReadAll(mail.Body))(t)))
	app.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q,"purpose":"sign-up"}`, code), 200)
	operator.must(t, "POST", "/admin/mailboxes/alice@example.com/reset", `{"reason":"asked"}`, 200)
	for _, email := range []string{"alice@example.com", "stranger@example.com"} {
		if status := bounced(t, p.URL, email, mail.Header.Get("X-Mailin-Custom")); status != 200 {
			t.Fatalf("the bounce is %d", status)
		}
	}
	app.mustSend(t, "alice@example.com", 422)
	operator.must(t, "PUT", "/admin/suppressions/bob@example.com", `{"reason":"complaint"}`, 204)
	must.OK(t, submit(p.awaitLine(t, "serving", "smtp_address"))) // the one of the day
	p.waits(t, 10)
	p.Stop(t, syscall.SIGKILL)
	receiver.down.Store(false)
	p = startServer(t, environ)
	p.waits(t, 0)
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	slices.SortStableFunc(receiver.told, func(a, b string) int {
		return strings.Compare(strings.ToLower(strings.Fields(a)[1]), strings.ToLower(strings.Fields(b)[1]))
	})
	want := []string{
		"email.sent Alice@example.com app http sign-up mailbox minute", "email.refused alice@example.com app http mailbox minute quota-exceeded",
		"email.verified alice@example.com app http", "email.reset alice@example.com ops http asked", "email.bounced alice@example.com brevo brevo hard",
		"email.suppressed alice@example.com brevo brevo hard-bounce", "email.refused alice@example.com app http recipient-suppressed hard-bounce", "email.sent alice@example.com app smtp mailbox minute",
		"email.suppressed bob@example.com ops http complaint", "email.rejected carol@example.com app http mailbox minute recipient-rejected",
	}
	if got := strings.Join(receiver.told, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("it was told\n%s", got)
	}
	for _, body := range receiver.bodies {
		if strings.Contains(body, code) {
			t.Errorf("a code is in %s", body)
		}
	}
	if len(receiver.bodies) != len(want) || receiver.repeated == 0 {
		t.Errorf("%d ids for %d events; %d were repeated", len(receiver.bodies), len(want), receiver.repeated)
	}
}

// While the receiver hangs, sends are answered as without one, and a shutdown does not wait for it. A node beside
// Redis that keeps no records of its own has the journal all the same.
func TestEvents_ReceiverHangs_SendsGoOn(t *testing.T) {
	t.Parallel()
	asked, hang := make(chan struct{}, 100), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-hang
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(hang) })
	redis := redistest.Alone(t)
	p := startServer(t, besideRedis(t, redis, startRelay(t).URL(), "MAILGATE_ON_STORE_OUTAGE=refuse", "MAILGATE_EVENTS_URL="+receiver.URL, "MAILGATE_EVENTS_SECRET="+eventsSecret))
	app := newClient(t, p.URL, apiKey)
	for i := range 50 {
		app.mustSend(t, fmt.Sprintf("m%d@example.com", i), 200)
		if i < 8 { // of which each is about a mailbox of its own
			<-asked
		}
	}
	p.waits(t, 50)
	if status := p.Stop(t, syscall.SIGTERM); status != exitOK {
		t.Errorf("it exits with %d", status)
	}
}

// What cannot be right is one line that names the setting.
func TestEvents_BadSettings_NamedAtTheStart(t *testing.T) {
	t.Parallel()
	const url, secretOf = "MAILGATE_EVENTS_URL=https://app.acme.example/mailgate", "MAILGATE_EVENTS_SECRET=" + eventsSecret
	memory := "MAILGATE_DATA_DIR=" + t.TempDir()
	for want, with := range map[string][]string{
		"MAILGATE_EVENTS_SECRET: must be set with MAILGATE_EVENTS_URL":                     {url, memory},
		"MAILGATE_EVENTS_SECRET: has no effect without MAILGATE_EVENTS_URL":                {secretOf, memory},
		"MAILGATE_EVENTS_SECRET: must be whsec_ and base64":                                {url, "MAILGATE_EVENTS_SECRET=whsec_Hush", memory},
		"MAILGATE_EVENTS_URL: must begin with https:// unless it is on this machine":       {"MAILGATE_EVENTS_URL=http://app.acme.example/", secretOf, memory},
		"MAILGATE_EVENTS_URL: must be a URL without a user":                                {"MAILGATE_EVENTS_URL=https://a:b@app.acme.example/", secretOf, memory},
		"MAILGATE_EVENTS_URL: needs a directory for the journal":                           {url, secretOf, inMemory},
		"MAILGATE_EVENTS_URL: needs a directory for the journal of events; set MAILGATE_D": {url, secretOf, "MAILGATE_REDIS_URL=redis://127.0.0.1:1", "MAILGATE_SECRET=all-" + secret},
	} {
		does(t, settingsFor("smtp://127.0.0.1:1?tls=none", with...), exitMisusage, want, "check-config")
	}
	out := does(t, settingsFor("smtp://127.0.0.1:1?tls=none", url, secretOf+"|"+formerEventsSecret, "MAILGATE_DATA_DIR=records"), exitOK,
		"\nEvents are posted to https://app.acme.example/mailgate, signed with each secret (2), and wait in records/events\n", "check-config")
	if strings.Contains(out, eventsSecret) || !strings.Contains(out, "whsec_***") {
		t.Error(out)
	}
}

// A journal that another process has open stops the start.
func TestEvents_JournalInUse_DoesNotStart(t *testing.T) {
	t.Parallel()
	redis := redistest.Alone(t)
	environ := besideRedis(t, redis, startRelay(t).URL(), "MAILGATE_ON_STORE_OUTAGE=refuse", "MAILGATE_EVENTS_URL=http://127.0.0.1:1", "MAILGATE_EVENTS_SECRET="+eventsSecret)
	startServer(t, environ)
	does(t, environ, exitMisusage, "another process uses this data directory", "serve")
}

// The receivers of docs/events.md, as they are there, take what mailgate signs, and nothing else.
func TestEvents_SampleReceivers_TakeThem(t *testing.T) {
	need.Long(t)
	for language, build := range map[string]string{
		"go": "go build -o DIR/run DIR/sample.go", // in this module, which has the library
		"ts": "cd DIR && npm install --silent --ignore-scripts --prefer-offline --no-audit --no-fund express@5.3.0 standardwebhooks@1.1.1 typescript@5.9.3 @types/express@5 @types/node@20 && " +
			"npx tsc --strict --skipLibCheck --target es2022 --module nodenext sample.ts && (echo '#!/bin/sh'; echo 'exec node sample.js') >run && chmod +x run",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir, port := t.TempDir(), fmt.Sprint(servertest.Port(t))
			block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```").FindStringSubmatch(readFile(t, "../../docs/events.md"))
			servertest.Write(t, filepath.Join(dir, "sample."+language), strings.ReplaceAll(block[1], "3000", port))
			servertest.Write(t, filepath.Join(dir, "package.json"), `{"private": true, "type": "module"}`)
			need.Program(t, "npm")
			if out, err := exec.Command("sh", "-ec", strings.ReplaceAll(build, "DIR", dir)).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			receiver := exec.Command("./run")
			receiver.Dir, receiver.Env = dir, append(os.Environ(), "MAILGATE_EVENTS_SECRET="+eventsSecret)
			servertest.Start(t, receiver)
			for secret, result := range map[string]string{eventsSecret: "delivered", formerEventsSecret: "failed", formerEventsSecret + "|" + eventsSecret: "delivered"} {
				p := startServer(t, settingsFor(startRelay(t).URL(), "MAILGATE_DATA_DIR="+t.TempDir(), "MAILGATE_EVENTS_URL=http://127.0.0.1:"+port+"/mailgate-events", "MAILGATE_EVENTS_SECRET="+secret))
				newClient(t, p.URL, apiKey).mustSend(t, "alice@example.com", 200)
				servertest.Eventually(t, result, func() bool { return p.shows(t, `mailgate_events_total{result="`+result+`"} 1`) })
			}
		})
	}
}
