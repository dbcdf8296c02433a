package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

const (
	brevoToken = "brevo-token-0123456789"
	mailgunKey = "key-0123456789abcdef"
)

// byMailgun makes a call of Mailgun, whose signature is of the token alone.
func byMailgun(token, event string) string {
	now := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(mailgunKey))
	fmt.Fprintf(mac, "%d%s", now, token)
	return fmt.Sprintf(`{"signature":{"timestamp":"%d","token":%q,"signature":"%x"},"event-data":%s}`, now, token, mac.Sum(nil), event)
}

// bounced reports a hard bounce as Brevo does, with the field that the email had.
func bounced(t testing.TB, url, email, field string) int {
	t.Helper()
	body := fmt.Sprintf(`{"event":"hard_bounce","email":%q,"X-Mailin-custom":%q}`, email, field)
	return must.Get(newClient(t, url, "").ask("POST", "/hooks/brevo", body, http.Header{"Authorization": {"Bearer " + brevoToken}}))(t).Status
}

// A token of Mailgun that one node has seen brings no other event to another node, also with the proof of its recipient.
func TestBounce_MailgunTokenSeenByAnotherNode_NothingSuppressed(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	one, other := startServer(t, besideRedis(t, redis, relay.URL(), "MAILGATE_HOOK_MAILGUN="+mailgunKey)), startServer(t, besideRedis(t, redis, relay.URL(), "MAILGATE_HOOK_MAILGUN="+mailgunKey))
	newClient(t, one.URL, apiKey).mustSend(t, "victim@example.com", 200)
	complaint := fmt.Sprintf(`{"event":"complained","recipient":"victim@example.com","user-variables":%s}`, relay.List()[0].Header.Get("X-Mailgun-Variables"))
	call := byMailgun("token-1", `{"event":"delivered","recipient":"mallory@example.com"}`)
	at := strings.Index(call, `,"event-data":`)
	operator := newClient(t, other.URL, adminKey)
	newClient(t, one.URL, "").must(t, "POST", "/hooks/mailgun", call, 200)
	newClient(t, other.URL, "").must(t, "POST", "/hooks/mailgun", call[:at]+`,"event-data":`+complaint+"}", 200)
	if list := operator.get(t, "/admin/suppressions").Raw; strings.Contains(list, "victim") {
		t.Errorf("the list is %s", list)
	}
	newClient(t, other.URL, "").must(t, "POST", "/hooks/mailgun", byMailgun("token-2", complaint), 200)
	if list := operator.get(t, "/admin/suppressions").Raw; !strings.Contains(list, `"victim@example.com","reason":"complaint"`) {
		t.Errorf("with a token of its own the list is %s", list)
	}
}

// A bounce of an email that another node sent suppresses its address at all nodes. While Redis is away the provider
// is to repeat it; and after a change of the secret the emails that were sent before still count.
func TestBounce_TwoNodesOutageAndNewSecret_AppliedOnce(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Durable(t), startRelay(t)
	environ := besideRedis(t, redis, relay.URL(), "MAILGATE_HOOK_BREVO="+brevoToken)
	one, other := startServer(t, besideRedis(t, redis, relay.URL(), "MAILGATE_HOOK_BREVO="+brevoToken)), startServer(t, environ)
	app, operator := newClient(t, one.URL, apiKey), newClient(t, one.URL, adminKey)
	fields := map[string]string{}
	for _, email := range []string{"a@example.com", "b@example.com"} {
		app.mustSend(t, email, 200)
		for _, mail := range relay.List() {
			fields[mail.To[0]] = mail.Header.Get("X-Mailin-Custom")
		}
	}
	if status := bounced(t, other.URL, "a@example.com", fields["a@example.com"]); status != 200 {
		t.Fatalf("the bounce is %d", status)
	}
	servertest.Eventually(t, "the bounce at the first node", func() bool { return tries(t, app, "POST", "/send-code", bodyFor("a@example.com")) == 422 })
	operator.must(t, "DELETE", "/admin/suppressions/a@example.com", "", 204)

	redis.Kill()
	if status := bounced(t, other.URL, "b@example.com", fields["b@example.com"]); status != 429 {
		t.Errorf("in an outage a bounce is %d", status)
	}
	redis.Restart()
	servertest.Eventually(t, "the repeat", func() bool { return bounced(t, other.URL, "b@example.com", fields["b@example.com"]) == 200 })
	if status := bounced(t, other.URL, "a@example.com", fields["a@example.com"]); status != 200 {
		t.Errorf("the repeat of an event that was applied is %d", status)
	}
	list := ""
	servertest.Eventually(t, "the list after the outage", func() bool {
		answer := operator.get(t, "/admin/suppressions")
		list = answer.Raw
		return answer.Status == 200
	})
	if strings.Contains(list, "a@example.com") || !strings.Contains(list, `"b@example.com","reason":"hard-bounce"`) {
		t.Errorf("the list is %s", list)
	}

	operator.must(t, "DELETE", "/admin/suppressions/b@example.com", "", 204)
	app.mustSend(t, "c@example.com", 200)
	field := relay.List()[len(relay.List())-1].Header.Get("X-Mailin-Custom")
	other.Stop(t, syscall.SIGTERM)
	environ = append(environ, "MAILGATE_SECRET=another-"+secret)
	other = startServer(t, environ)
	bounced(t, other.URL, "c@example.com", field)
	if list := operator.get(t, "/admin/suppressions").Raw; strings.Contains(list, "c@example.com") {
		t.Errorf("under another secret the list is %s", list)
	}
	other.Stop(t, syscall.SIGTERM)
	environ = append(environ, "MAILGATE_SECRET=another-"+secret+" | older-"+secret+" | all-"+secret)
	other = startServer(t, environ)
	bounced(t, other.URL, "c@example.com", field)
	if list := operator.get(t, "/admin/suppressions").Raw; !strings.Contains(list, "c@example.com") {
		t.Errorf("with the former secret the list is %s", list)
	}
	does(t, append(environ, "MAILGATE_PUBLIC_URL=https://mail.acme.example"), exitOK, "https://mail.acme.example/hooks/brevo\n", "check-config")
}

func TestConfig_BounceHooks_MistakesNamed(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"HOOK_SES=arn:aws:sqs:eu-west-1:123456789012:x": "MAILGATE_HOOK_SES: must be ARNs",
		"HOOK_SENDGRID=MFkwEwYHKoZIzj0CAQY":             "MAILGATE_HOOK_SENDGRID: must be the verification key",
		"HOOK_POSTMARK=user-without-a-password":         "MAILGATE_HOOK_POSTMARK: must be user:password",
		"HOOK_RESEND=whsec_c2hvcnQgc2VjcmV0":            "MAILGATE_HOOK_RESEND: must be the signing secret",
		"HOOK_MAILGUN=short":                            "MAILGATE_HOOK_MAILGUN: has fewer than 16",
		"HOOK_UNPROVEN=true":                            "MAILGATE_HOOK_UNPROVEN: has no effect",
		"SECRET=0123456789abcdef|short":                 "MAILGATE_SECRET: has fewer than 16",
	} {
		for _, command := range []string{"serve", "check-config"} {
			does(t, settingsFor("smtp://127.0.0.1:1?tls=none", inMemory, "MAILGATE_"+setting), exitMisusage, want, command)
		}
	}
}
