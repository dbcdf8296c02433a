package main

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// Servers that are stopped for a while, in a burst of sends, do not take their own lateness for
// an outage of Redis: a mailbox gets one mail, whoever is asked.
func TestSends_ServersStoppedForAWhile_OneMailForEach(t *testing.T) {
	const rounds, mailboxes, stop = 3, 30, 400 * time.Millisecond
	relay := startRelay(t, sandbox.Options{KeepMessages: 1000})
	environ := settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redistest.Alone(t).URL(), shared)
	servers := []*process{startServer(t, environ), startServer(t, environ), startServer(t, environ)}
	var apps []client
	for i, server := range servers {
		apps = append(apps, newClient(t, server.URL, apiKey))
		apps[i].mustSend(t, fmt.Sprintf("met%d@example.com", i), 200)
	}
	var mu sync.Mutex
	degraded := 0
	for round := range rounds {
		var burst sync.WaitGroup
		for i := range mailboxes {
			for _, app := range apps {
				burst.Go(func() {
					a, err := app.sendCode(fmt.Sprintf("%d-%d@example.com", round, i))
					mu.Lock()
					defer mu.Unlock()
					if err == nil && a.Body.Degraded {
						degraded++
					}
				})
			}
		}
		time.Sleep(time.Duration(5*round) * time.Millisecond)
		for _, server := range servers {
			server.signal(t, syscall.SIGSTOP)
		}
		time.Sleep(stop) // what is tested is a stop of this length
		for _, server := range servers {
			server.signal(t, syscall.SIGCONT)
		}
		burst.Wait()
	}
	mails := map[string]int{}
	for _, mail := range relay.List() {
		for _, to := range mail.To {
			if mails[to]++; mails[to] > 1 {
				t.Errorf("%s was sent %d mails", to, mails[to])
			}
		}
	}
	if degraded > 0 {
		t.Errorf("%d sends were decided without Redis", degraded)
	}
	t.Logf("%d mails for %d mailboxes", len(relay.List()), rounds*mailboxes)
}
