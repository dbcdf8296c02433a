package main

import (
	"fmt"
	"sync"
	"testing"
)

// What a rule keeps for first sends is theirs: with the rest gone a mailbox that had a mail
// gets no other, and one that had none does, until nothing is left.
func TestKeptForFirstSends(t *testing.T) {
	const provider = `rules:
- {name: mailbox, limit: day=9/24h}
- {name: provider, by: all, algorithm: fixed-window, limit: decade=4/87840h, keep_for_first_sends: 2}
`
	onEachStore(t, func(t *testing.T, environ ...string) {
		s := startSite(t, provider, environ...)
		for _, tt := range []struct {
			to     string
			status int
		}{
			{"a", 200}, {"a", 200}, // two are left
			{"a", 429}, {"b", 200}, {"b", 429}, {"c", 200},
			{"d", 429}, {"a", 429},
		} {
			a := s.app.mustSend(t, tt.to+"@example.com", tt.status)
			if tt.status == 429 && (a.Body.Rule != "provider" || a.Body.Limit != "decade") {
				t.Errorf("%s is refused by %+v", tt.to, a.Body)
			}
		}
		if n := len(s.relay.List()); n != 4 {
			t.Errorf("%d mails", n)
		}
	})
}

// A mailbox that is refused takes no turn in the queue. Many mailboxes are sent to many
// times at once, and the queue of each domain has one turn for each of its mailboxes: if
// the refused took any, even to give it back, a mailbox that is not refused would find none.
func TestTheRefusedTakeNoTurn(t *testing.T) {
	const domains, mailboxes, each = 8, 15, 6
	pace := fmt.Sprintf(`rules:
- {name: mailbox, limit: day=1/24h}
- {name: pace, by: domain, algorithm: leaky-bucket, limit: turn=%d/2s, queue: %d}
`, mailboxes, mailboxes-1)
	onEachStore(t, func(t *testing.T, environ ...string) {
		s := startSite(t, pace, environ...)
		var emails []string
		for i := range domains * mailboxes {
			emails = append(emails, fmt.Sprintf("user%d@d%d.example", i, i/mailboxes))
		}
		yeses := stampede(t, []client{s.app}, emails, each)
		for _, email := range emails {
			if yeses[email] != 1 {
				t.Errorf("%s was sent %d mails", email, yeses[email])
			}
		}
		if n := len(s.relay.List()); n != len(emails) {
			t.Errorf("%d mails, want %d", n, len(emails))
		}
	})
}

// stampede asks all servers at once for each mailbox so many times, and counts those that were
// answered 200. Any other is to be answered 429.
func stampede(t *testing.T, clients []client, emails []string, each int) map[string]int {
	yeses := map[string]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range each * len(emails) {
		// Neighbours are for one mailbox, and ask different servers.
		app, email := clients[i%len(clients)], emails[i/each]
		group.Go(func() {
			<-begin
			a, err := app.sendCode(email)
			switch {
			case err != nil:
				t.Error(err)
			case a.Status == 200:
				mu.Lock()
				yeses[email]++
				mu.Unlock()
			case a.Status != 429:
				t.Errorf("status %d: %+v", a.Status, a.Body)
			}
		})
	}
	close(begin)
	group.Wait()
	return yeses
}
