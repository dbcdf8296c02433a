package main

import (
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
)

// Three processes race for the few places of a rule beside the mailbox's: together they
// send no more than it has, each yes is a mail, and a no of either rule has cost the other
// nothing when all is over.
func TestThreeProcessesBySeveralRules(t *testing.T) {
	const limit, mailboxes, each = 7, 20, 9
	const rules = `rules:
- {name: mailbox, limit: day=1/24h}
- {name: provider, by: all, algorithm: fixed-window, limit: decade=7/87840h}
`
	for round := range 5 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			redis := redistest.Alone(t)
			environ := []string{"MAILGATE_REDIS_URL=" + redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", shared}
			s := startSite(t, rules, environ...)
			clients := []client{s.app}
			for range 2 {
				other := startServer(t, settingsFor(s.relay.URL(), append(environ, "MAILGATE_RULES="+s.rules)...))
				clients = append(clients, newClient(t, other.URL, apiKey))
			}
			var emails []string
			for i := range mailboxes {
				emails = append(emails, fmt.Sprintf("user%d@example.com", i))
			}
			yeses := stampede(t, clients, emails, each)
			total := s.onRecord(t, emails, yeses)
			if total > limit {
				t.Fatalf("%d were sent, and %d may be", total, limit)
			}
			for n := range limit - total {
				s.app.mustSend(t, fmt.Sprintf("later%d@example.com", n), 200)
			}
			if a := s.app.mustSend(t, "one-more@example.com", 429); a.Body.Rule != "provider" {
				t.Errorf("refused by %+v", a.Body)
			}
			t.Logf("%d were sent in the race", total)
		})
	}
}

// onRecord holds what each mailbox has on record and in the relay against its yeses, and
// returns how many they are.
func (s *site) onRecord(t *testing.T, emails []string, yeses map[string]int) (total int) {
	t.Helper()
	mails := map[string]int{}
	for _, mail := range s.relay.List() {
		mails[mail.To[0]]++
	}
	ops := newClient(t, s.URL, adminKey)
	for _, email := range emails {
		recorded := len(ops.must(t, "GET", "/admin/mailboxes/"+email, "", 200).Body.Sends)
		if recorded != yeses[email] || mails[email] != yeses[email] || recorded > 1 {
			t.Errorf("%s: %d yeses, %d mails, %d on record", email, yeses[email], mails[email], recorded)
		}
		total += yeses[email]
	}
	if len(mails) != len(yeses) {
		t.Errorf("mails to %d mailboxes, and yeses for %d", len(mails), len(yeses))
	}
	return total
}
