package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// Guesses are bounded as they are set, on each store, and an operator gives them back.
func TestGuesses(t *testing.T) {
	onEachStore(t, func(t *testing.T, environ ...string) {
		relay := startRelay(t, sandbox.Options{})
		server := startServer(t, settingsFor(relay.URL(), append(environ, "MAILGATE_GUESSES=hour=2/1h")...))
		app, ops := newClient(t, server.URL, apiKey), newClient(t, server.URL, adminKey)
		app.mustSend(t, "alice@example.com", 200)
		code := sixDigits.FindString(relay.List()[0].Text)
		try := func(code string, status int) answer {
			t.Helper()
			return app.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q}`, code), status)
		}
		wrong := another(code)
		for left := 1; left >= 0; left-- {
			if a := try(wrong, 422); a.Body.Left != left {
				t.Errorf("%d left, want %d", a.Body.Left, left)
			}
		}
		if a := try(code, 429); a.Body.Rule != "guesses" || a.Body.Limit != "hour" {
			t.Errorf("%+v", a.Body)
		}
		ops.must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 200)
		try(code, 200)
		try(code, 410)
	})
}

// While Redis can be read and takes no writes, each node counts guesses by itself. Then a code
// from before is no better than a wrong one anywhere, and one of meanwhile is right where it
// was made.
func TestGuessesWhileRedisTakesNoWrites(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t)
	environ := settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", "MAILGATE_TIERS=hour=9/1h", shared)
	nodes := []client{newClient(t, startServer(t, environ).URL, apiKey), newClient(t, startServer(t, environ).URL, apiKey)}
	var codes []string
	send := func(n client) string {
		n.mustSend(t, "alice@example.com", 200)
		for _, mail := range relay.List() {
			if code := sixDigits.FindString(mail.Text); !slices.Contains(codes, code) {
				codes = append(codes, code)
				return code
			}
		}
		t.Fatal("no other code was mailed")
		return ""
	}
	try := func(n client, code string, status int) answer {
		t.Helper()
		return n.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q}`, code), status)
	}
	before := send(nodes[0])
	send(nodes[1]) // has met Redis, too
	if err := redis.Client().ConfigSet(context.Background(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	meanwhile := send(nodes[0])
	wrong := "000000"
	for i := 1; slices.Contains(codes, wrong); i++ {
		wrong = fmt.Sprintf("%06d", i)
	}
	for _, n := range nodes {
		if no, right := try(n, wrong, 503), try(n, before, 503); no.Raw != right.Raw {
			t.Errorf("a wrong code: %s, and the right one: %s", no.Raw, right.Raw)
		}
	}
	try(nodes[1], meanwhile, 503)
	try(nodes[0], meanwhile, 200)
}
