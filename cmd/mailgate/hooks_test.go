package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

const (
	hookSecret  = "aWxpa2VzdXBhYmFzZXZlcnltdWNoYW5kaWhvcGV5b3Vkb3Rvbw=="
	logtoHeader = "Bearer of-the-connector-1"
)

// hooksOn are the settings of both hooks.
var hooksOn = []string{
	"MAILGATE_HOOK_SUPABASE=v1,whsec_" + hookSecret, "MAILGATE_HOOK_SUPABASE_URL=https://project.supabase.example/auth/v1",
	"MAILGATE_HOOK_LOGTO=" + logtoHeader, "MAILGATE_HOOK_LOGTO_URL=https://app.example",
}

// event is a call of Supabase Auth under an event of its own, about this address.
func event(t testing.TB, name, uuid, email string) string {
	t.Helper()
	text := string(must.Get(os.ReadFile("../../hooks/testdata/" + name + ".json"))(t))
	return strings.NewReplacer("9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", uuid, "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed", uuid, "alice@", email+"@",
		"2026-11-20T11:59:59.900Z", time.Now().UTC().Format(time.RFC3339Nano)).Replace(text)
}

// signed are the headers of one try of a call, as Supabase Auth makes them with its library.
func signed(t testing.TB, body string) http.Header {
	t.Helper()
	now := time.Now()
	id := fmt.Sprint("msg_", now.UnixNano())
	signature := must.Get(must.Get(webhooks.NewWebhook("whsec_"+hookSecret))(t).Sign(id, now, []byte(body)))(t)
	return http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {fmt.Sprint(now.Unix())}, "Webhook-Signature": {signature}}
}

// callSupabase makes one try of a call.
func (c client) callSupabase(t testing.TB, body string) reply {
	t.Helper()
	r, err := c.ask("POST", "/hooks/supabase", body, signed(t, body))
	must.OK(t, err)
	return r
}

// A sign-up is sent, its retry and its repeat send nothing, and the next one is told how long to wait, within
// the limits of the HTTP door.
func TestServe_HookSupabase_SharesLimitsWithHTTP(t *testing.T) {
	relay := startRelay(t)
	p := startServer(t, settingsFor(relay.URL(), append(hooksOn, inMemory)...))
	supabase := newClient(t, p.URL, "")
	first := event(t, "signup", "1", "alice")
	for range 2 {
		if r := supabase.callSupabase(t, first); r.Status != 200 || r.Raw != "{}" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s", r.Status, r.Raw)
		}
	}
	r := supabase.callSupabase(t, event(t, "signup", "2", "Alice"))
	if r.Status != 200 || !strings.HasPrefix(r.Raw, `{"error":{"http_code":429,"message":"The minute limit of this mailbox is reached. Try again in `) || !strings.HasSuffix(r.Raw, ` seconds."}}`) {
		t.Errorf("%d %s", r.Status, r.Raw)
	}
	app := newClient(t, p.URL, apiKey)
	app.must(t, "POST", "/send-code", `{"email":"alice@example.com"}`, 429)

	all := relay.List()
	if len(all) != 1 {
		t.Fatalf("%d emails", len(all))
	}
	link := "https://project.supabase.example/auth/v1/verify?redirect_to=https%3A%2F%2Fapp.example%2Fwelcome&token=7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0&type=signup"
	if m := all[0]; m.Subject != "305805 – Confirm your email address" || !strings.Contains(m.Text, link) || !strings.Contains(m.HTML, `href="`+strings.ReplaceAll(link, "&", "&amp;")+`"`) || m.To[0] != "alice@example.com" {
		t.Errorf("the email is %q\n%s\n%s", m.Subject, m.Text, m.HTML)
	}
	metrics := app.must(t, "GET", "/metrics", "", 200).Raw
	for _, want := range []string{
		`mailgate_sends_total{door="supabase",limit="",outcome="sent",rule=""} 1`,
		`mailgate_sends_total{door="supabase",limit="",outcome="replayed",rule=""} 1`,
		`mailgate_sends_total{door="supabase",limit="minute",outcome="quota-exceeded",rule="mailbox"} 1`,
		`mailgate_sends_total{door="logto",limit="",outcome="sent",rule=""} 0`,
		`mailgate_http_requests_total{route="hook-supabase",status="200"} 3`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if status := p.Stop(t, syscall.SIGTERM); status != exitOK {
		t.Errorf("exit status %d", status)
	}
	lines := p.Log.Lines("hook-supabase")
	if len(lines) != 3 || lines[0]["key"] != "supabase" || lines[1]["replayed"] != true || lines[2]["limit"] != "minute" || lines[2]["problem"] != "quota-exceeded" || lines[2]["mailbox"] == nil {
		t.Errorf("the log has %v", lines)
	}
}

// Tries of one event send one email, whichever node each comes to and however many come at once.
func TestServe_HookSupabaseTwoNodes_OneEmailForAllTries(t *testing.T) {
	redis, relay := redistest.Alone(t), startRelay(t)
	var nodes []client
	for range 2 {
		p := startServer(t, besideRedis(t, redis, relay.URL(), hooksOn...))
		nodes = append(nodes, newClient(t, p.URL, ""))
	}
	signup, change := event(t, "signup", "1", "alice"), event(t, "email_change", "2", "bob")
	for range 2 {
		var tries sync.WaitGroup
		for i := range 8 {
			for _, body := range []string{signup, change} {
				tries.Go(func() {
					if r := nodes[i%2].callSupabase(t, body); r.Raw != "{}" {
						t.Error(r.Raw)
					}
				})
			}
		}
		tries.Wait()
	}
	if all := relay.List(); len(all) != 3 {
		t.Errorf("%d emails", len(all))
	}
}

func TestCheckConfig_Hooks_WithTheirURLs(t *testing.T) {
	relay := startRelay(t)
	on := settingsFor(relay.URL(), append(hooksOn, inMemory, "MAILGATE_PUBLIC_URL=https://mail.acme.example/gate/")...)
	out := does(t, on, exitOK, "\nHooks:\nsupabase  https://mail.acme.example/gate/hooks/supabase\nlogto     https://mail.acme.example/gate/hooks/logto\n", "check-config")
	if strings.Contains(out, hookSecret) || strings.Contains(out, "of-the-connector") || !strings.Contains(out, "v1,whsec_***") {
		t.Error(out)
	}
	everywhere := append(settingsFor(relay.URL(), inMemory, "MAILGATE_LISTEN=:8080"), hooksOn...)
	does(t, everywhere, exitOK, "  http://127.0.0.1:8080/hooks/logto\n", "check-config")
	if out := does(t, settingsFor(relay.URL(), inMemory), exitOK, "hook_supabase", "check-config"); strings.Contains(out, "Hooks:") {
		t.Error(out)
	}
}

// dev has the hooks that its flags name, and prints their sends.
func TestDev_Hooks_ArePrintedAndShown(t *testing.T) {
	page, stdout := startDev(t, nil, anyPort, "--hook-logto="+logtoHeader)
	for _, want := range []int{200, 429} {
		r, err := page.ask("POST", "/hooks/logto", `{"to":"foo@example.com","type":"SignIn","payload":{"code":"123456"}}`, http.Header{"Authorization": {logtoHeader}})
		if err != nil || r.Status != want {
			t.Errorf("%v, %d %s", err, r.Status, r.Raw)
		}
	}
	off, err := page.ask("POST", "/hooks/mailgun", "a=b", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	if err != nil || off.Status != 404 {
		t.Errorf("a form to a hook that is off: %v, %d %s", err, off.Status, off.Raw)
	}
	if list := page.must(t, "GET", "/demo/mails?after=0", "", 200).Raw; !strings.Contains(list, "123456 – Sign in") {
		t.Errorf("the inbox: %s", list)
	}
	printed := regexp.MustCompile(`Hook        http://127.0.0.1:\d+/hooks/logto\n(?s:.*)hook-logto +foo@example.com +200 sent\n.*hook-logto +foo@example.com +429 quota-exceeded; next in`)
	servertest.Eventually(t, "dev prints the sends", func() bool { return printed.MatchString(stdout.String()) })
}
