package main

import (
	"fmt"
	"net/smtp"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/redistest"
)

// A challenge of one node is solved at another, once, on one real Redis. Hooks and the
// SMTP door refuse as by any limit.
func TestChallenge_TwoNodesAndOtherDoors_SolvedOnce(t *testing.T) {
	t.Parallel()
	const rules = "rules:\n- {name: everyone, by: all, limit: day=1/24h, then: challenge}\n- {name: mailbox, limit: hour=9/1h}\n"
	redis, relay := redistest.Alone(t), startRelay(t)
	turnstile := []string{"MAILGATE_TURNSTILE_SECRET=secret-of-turnstile-0123", "MAILGATE_TURNSTILE_SITEKEY=0x4AAA", "MAILGATE_TURNSTILE_HOSTS=www.acme.example"}
	environ := besideRedis(t, redis, relay.URL(), append(append(hooksOn, doorOpen), turnstile...)...)
	one, other := startSite(t, rules, environ), startSite(t, rules, besideRedis(t, redis, relay.URL(), turnstile...))
	one.app.mustSend(t, "a@example.com", 200)
	asked := other.app.must(t, "POST", "/send-code", bodyFor("b@example.com"), 403).Raw
	if !strings.Contains(asked, `"turnstile":{"sitekey":"0x4AAA"}`) {
		t.Errorf("asked: %s", asked)
	}
	solution := fmt.Sprintf(`{"email":"b@example.com","challenge":%q}`, apitest.Solve([]byte(asked)))
	one.app.must(t, "POST", "/send-code", solution, 200)
	for _, node := range []*site{one, other} {
		node.app.must(t, "POST", "/send-code", solution, 403)
	}
	if n := len(relay.List()); n != 2 {
		t.Errorf("%d emails were sent", n)
	}

	answer := one.app.callSupabase(t, event(t, "signup", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6e", "carol"))
	if !strings.Contains(answer.Raw, `"http_code":429`) {
		t.Errorf("Supabase is told %s", answer.Raw)
	}
	at := regexp.MustCompile(`"smtp_address":"([^"]+)"`).FindStringSubmatch(one.Log.String())
	err := smtp.SendMail(at[1], smtp.PlainAuth("", "app", apiKey, "127.0.0.1"), "no-reply@acme.example", []string{"carol@example.com"}, []byte(submitted))
	if err == nil || !strings.Contains(err.Error(), `5.7.1 limit`) {
		t.Errorf("the SMTP door says %v", err)
	}
	does(t, append(environ, "MAILGATE_RULES="+one.rules), exitOK, "day=1/24h; then challenge", "check-config")
	does(t, append(environ, "MAILGATE_RULES="+one.rules), exitOK, "Challenges accepted: proof of work, Turnstile on www.acme.example", "check-config")
}
