package main

import (
	"fmt"
	"net/smtp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// unverifiedRules let a visitor have two codes, or as many as half of what was verified, that were not checked right.
const unverifiedRules = `
rules:
  - {name: unproven, by: client_ip, counts: unverified, limit: floor=2/24h, ratio: 0.5}
`

const (
	visitor  = "203.0.113.7"
	otherKey = "other-" + secret
)

func sendFrom(client, email, more string) string {
	return fmt.Sprintf(`{"email":%q,"client_ip":%q%s}`, email, client, more)
}

// codeFor is the newest code that the relay has for an address.
func codeFor(t testing.TB, relay *sandbox.Server, email string) (code string) {
	t.Helper()
	for _, m := range relay.List() {
		if strings.Contains(strings.Join(m.To, " "), email) {
			code = sixDigits.FindString(m.Text)
		}
	}
	return code
}

// A visitor who mails strangers runs dry, and one whose codes are checked right does not: on one machine and over
// three nodes with Redis, with codes of mailgate's and of the caller's.
func TestBudget_EachHome_StrangersRunDryPeopleDoNot(t *testing.T) {
	t.Parallel()
	for _, home := range []string{"one machine", "Redis"} {
		t.Run(home, func(t *testing.T) {
			t.Parallel()
			relay := startRelay(t)
			nodes := []*site{startSite(t, unverifiedRules, settingsFor(relay.URL(), inMemory, "MAILGATE_API_KEYS=app:"+apiKey+",other:"+otherKey))}
			if home == "Redis" {
				redis := redistest.Alone(t)
				for i := range 3 {
					s := startSite(t, unverifiedRules, besideRedis(t, redis, relay.URL(), "MAILGATE_API_KEYS=app:"+apiKey+",other:"+otherKey))
					if nodes = append(nodes, s); i == 0 {
						nodes = nodes[1:]
					}
				}
			}
			turn := 0
			next := func() client { turn++; return nodes[turn%len(nodes)].app }
			send := func(email string, status int, more ...string) reply {
				t.Helper()
				to := next()
				body := sendFrom(visitor, email, strings.Join(more, ""))
				if status == 200 { // what another node was told of is known within a second
					var r reply
					servertest.Eventually(t, "room", func() bool {
						var err error
						r, err = to.ask("POST", "/send-code", body, nil)
						return err == nil && r.Status != 429
					})
					if r.Status == status {
						return r
					}
				}
				return to.must(t, "POST", "/send-code", body, status)
			}
			signUp := func(email string) {
				t.Helper()
				send(email, 200)
				next().mustVerify(t, email, codeFor(t, relay, email), 200)
			}
			for i := range 4 {
				signUp(fmt.Sprintf("person%d@example.com", i))
			}
			send("stranger1@example.com", 200)
			send("stranger2@example.com", 200)
			if r := send("stranger3@example.com", 429); r.Body.Rule != "unproven" || r.Body.Limit != "floor" {
				t.Errorf("the third stranger: %s", r.Raw)
			}
			next().mustVerify(t, "stranger1@example.com", "000000", 422)
			next().mustVerify(t, "stranger2@example.com", codeFor(t, relay, "stranger2@example.com"), 200) // one was none
			signUp("person5@example.com")
			// Six are verified, so three may be outstanding.
			own := `,"code":"482913"`
			send("own1@example.com", 200, own)
			send("own2@example.com", 200, own)
			send("own3@example.com", 429, own)
			for email, status := range map[string]int{"own1@example.com": 200, "nobody@example.com": 200} {
				newClient(t, nodes[0].URL, otherKey).must(t, "POST", "/verify-code", `{"email":"`+email+`","verified":true}`, status)
			}
			send("own3@example.com", 429, own) // another caller's report is not about it
			next().must(t, "POST", "/verify-code", `{"email":"own1@example.com","verified":true}`, 200)
			send("own3@example.com", 200, own)
			send("own4@example.com", 429, own)
			does(t, operatorOf(nodes[0].URL), exitOK, "floor  3 of 3", "show", "--rule", "unproven", visitor)
			does(t, operatorOf(nodes[0].URL), exitOK, "records cleared", "reset", "--rule", "unproven", visitor)
			does(t, operatorOf(nodes[0].URL), exitOK, "floor  0 of 3", "show", "--rule", "unproven", visitor)
			send("own4@example.com", 200, own)
			does(t, append(settingsFor(relay.URL(), inMemory), "MAILGATE_RULES="+nodes[0].rules), exitOK,
				"unproven   by client_ip  sliding-window floor=2/24h in parts of 1440000 ms; counts a send until its code is right, and none of the SMTP door or a hook; or 50 % of what was verified, if more\n", "check-config")
		})
	}
}

// A mailbox's earlier codes are returned with the one that is right, and a send that did not leave is not charged.
func TestBudget_SecondCode_ReturnsBoth(t *testing.T) {
	t.Parallel()
	relay := startRelay(t)
	s := startSite(t, `
rules:
  - {name: mailbox, limit: second=9/1s}
  - {name: unproven, by: client_ip, counts: unverified, limit: floor=2/24h}
`, settingsFor(relay.URL(), inMemory))
	for range 2 {
		s.app.must(t, "POST", "/send-code", sendFrom(visitor, "slow@example.com", ""), 200)
	}
	s.app.must(t, "POST", "/send-code", sendFrom(visitor, "b@example.com", ""), 429)
	s.app.mustVerify(t, "slow@example.com", codeFor(t, relay, "slow@example.com"), 200)
	for range 2 {
		s.app.must(t, "POST", "/send-code", sendFrom(visitor, "b@example.com", ""), 200)
	}
	s.app.must(t, "POST", "/send-code", sendFrom(visitor, "c@example.com", ""), 429)
	s.app.must(t, "POST", "/send-code", sendFrom("198.51.100.1", "c@example.com", ""), 200)
}

// In an outage a node returns what it charged alone, for a code that it made alone; Redis then has it so.
func TestBudget_Outage_ReturnedAlone(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Durable(t), startRelay(t)
	rules := strings.Replace(unverifiedRules, ", ratio: 0.5", "", 1)
	s, other := startSite(t, rules, besideRedis(t, redis, relay.URL())), startSite(t, rules, besideRedis(t, redis, relay.URL()))
	s.app.must(t, "POST", "/send-code", sendFrom(visitor, "before@example.com", ""), 200)
	before := codeFor(t, relay, "before@example.com")
	redis.Kill()
	s.app.must(t, "POST", "/send-code", sendFrom(visitor, "alone@example.com", ""), 200)
	s.app.must(t, "POST", "/send-code", sendFrom(visitor, "more@example.com", ""), 429)
	s.app.mustVerify(t, "before@example.com", before, 503)
	s.app.must(t, "POST", "/verify-code", `{"email":"before@example.com","verified":true}`, 503)
	s.app.mustVerify(t, "alone@example.com", codeFor(t, relay, "alone@example.com"), 200)
	s.app.must(t, "POST", "/send-code", sendFrom(visitor, "more@example.com", ""), 200)
	redis.Restart()
	servertest.Eventually(t, "the end of the outage", func() bool {
		return s.shows(t, "mailgate_store_degraded 0") && other.shows(t, "mailgate_store_degraded 0")
	})
	other.app.must(t, "POST", "/send-code", sendFrom(visitor, "late@example.com", ""), 429)
	other.app.mustVerify(t, "before@example.com", before, 200)
	other.app.must(t, "POST", "/send-code", sendFrom(visitor, "late@example.com", ""), 200)
}

// The SMTP door and hooks do not learn whether a code was right, so a budget does not count their emails.
func TestBudget_OtherDoors_AreNotCounted(t *testing.T) {
	t.Parallel()
	relay := startRelay(t)
	s := startSite(t, `
rules:
  - {name: mailbox, limit: second=9/1s}
  - {name: unproven, by: mailbox, counts: unverified, limit: floor=1/24h}
`, settingsFor(relay.URL(), append(hooksOn, inMemory, doorOpen)...))
	s.app.mustSend(t, "mallory@example.com", 200)
	s.app.mustSend(t, "mallory@example.com", 429)
	at := s.awaitLine(t, "serving", "smtp_address")
	must.OK(t, smtp.SendMail(at, smtp.PlainAuth("", "app", apiKey, "127.0.0.1"), "no-reply@acme.example", []string{"mallory@example.com"}, []byte(submitted)))
	if answer := s.app.callSupabase(t, event(t, "signup", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6e", "mallory")); answer.Raw != "{}" {
		t.Errorf("Supabase is told %s", answer.Raw)
	}
	s.app.mustSend(t, "mallory@example.com", 429)
}
