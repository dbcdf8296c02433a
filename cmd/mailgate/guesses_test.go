package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// A code is right for what it was mailed for, on each store, and for nothing else.
func TestACodeProvesItsPurpose(t *testing.T) {
	onEachStore(t, func(t *testing.T, environ ...string) {
		relay := startRelay(t, sandbox.Options{})
		app := newClient(t, startServer(t, settingsFor(relay.URL(), environ...)).URL, apiKey)
		app.must(t, "POST", "/send-code", `{"email":"alice@example.com","purpose":"sign-up"}`, 200)
		code := sixDigits.FindString(relay.List()[0].Text)
		for left, purpose := range []string{"", `,"purpose":"reset-password"`} {
			a := app.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q%s}`, code, purpose), 422)
			if a.Body.Type != "urn:mailgate:problem:code-incorrect" || a.Body.Left != 4-left {
				t.Errorf("for another purpose: %s", a.Raw)
			}
		}
		app.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q,"purpose":"sign-up"}`, code), 200)
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
