package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// everyKind are limits of every kind that keeps records of its own.
const everyKind = `rules:
- {name: log, by: client_ip, limit: day=9/24h}
- {name: window, by: domain, algorithm: sliding-window, limit: day=9/24h}
- {name: fixed, by: all, algorithm: fixed-window, limit: decade=9/87840h}
- {name: tokens, by: api_key, algorithm: token-bucket, limit: day=9/24h, burst: 9}
- {name: queue, by: template, algorithm: leaky-bucket, limit: second=9/1s, queue: 9}
actions:
- {name: login, limit: day=1/24h}
`

// everything lets a user of Redis do anything: then the prefix alone holds two apart.
func everything(*testing.T, string) string { return "~* +@all" }

// permitted is what docs/redis.md has a user of Redis be allowed, for another prefix.
func permitted(t *testing.T, prefix string) string {
	t.Helper()
	found := regexp.MustCompile("`(~mailgate:[^`]*)`").FindStringSubmatch(readFile(t, "../../docs/redis.md"))
	if found == nil {
		t.Fatal("docs/redis.md does not say what a user of Redis has to be allowed")
	}
	return strings.NewReplacer(`\|`, "|", "~mailgate:", "~"+prefix+":").Replace(found[1])
}

// startTenants starts a Redis and, for each prefix, a server on it with a user of its own. The
// servers have one secret, so that codes and keys of one would be good at another.
func startTenants(t *testing.T, may func(t *testing.T, prefix string) string, prefixes ...string) (*redistest.Server, []*site) {
	t.Helper()
	var users []string
	for _, prefix := range prefixes {
		users = append(users, fmt.Sprintf("user %s on >%s %s", prefix, secret, may(t, prefix)))
	}
	redis := redistest.Alone(t, users...)
	var tenants []*site
	for _, prefix := range prefixes {
		url := strings.Replace(redis.URL(), "redis://", "redis://"+prefix+":"+secret+"@", 1)
		environ := []string{"MAILGATE_REDIS_URL=" + url, "MAILGATE_REDIS_TIMEOUT=10s", "MAILGATE_GUESSES=day=2/24h", shared}
		if prefix != "mailgate" { // which is the default
			environ = append(environ, "MAILGATE_REDIS_PREFIX="+prefix)
		}
		tenants = append(tenants, startSite(t, everyKind, environ...))
	}
	return redis, tenants
}

// Two programs under two prefixes share a Redis and nothing that is in it, whichever of the
// two comes first, also where each has a user that may touch no key of the other.
func TestTwoPrefixes(t *testing.T) {
	t.Parallel()
	for name, may := range map[string]func(*testing.T, string) string{"users of all": everything, "users of their own": permitted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefixes := []string{"mailgate", "mailgate-staging"}
			redis, tenants := startTenants(t, may, prefixes...)
			for i, tenant := range tenants {
				if prefix := tenant.log.await(t, "the start", logged("serving", "redis_prefix")); prefix != prefixes[i] {
					t.Errorf("it serves under %q, want %q", prefix, prefixes[i])
				}
				tenant.app.must(t, "GET", "/readyz", "", 200)
				sendsAreApart(t, tenant, tenants[1-i], fmt.Sprintf("user%d@example.com", i))
				codesAreApart(t, tenant, tenants[1-i], fmt.Sprintf("guest%d@example.com", i))
			}
			for _, tenant := range tenants { // a guess that nothing gives back
				tenant.app.must(t, "POST", "/verify-code", `{"email":"user0@example.com","code":"none"}`, 422)
			}
			held := kinds(t, redis, prefixes)
			if one, other := held[prefixes[0]], held[prefixes[1]]; len(one) < 10 || !slices.Equal(one, other) {
				t.Errorf("the records of one are %q, those of the other %q", one, other)
			}
			nothingDenied(t, redis)
		})
	}
}

// sendsAreApart fails the test unless the other is as it was, whatever one sends and takes.
func sendsAreApart(t *testing.T, one, other *site, email string) {
	t.Helper()
	post := func(at *site, path, body string, status int) {
		t.Helper()
		at.app.must(t, "POST", path, strings.ReplaceAll(body, "@", email), status)
	}
	const visit, login = `{"email":"visitor-of-@","client_ip":"203.0.113.7"}`, `{"subject":"@"}`
	for _, at := range []*site{one, other} {
		a, err := at.app.once("key-of-"+email, email)
		if err != nil || a.Status != 200 || a.Header.Get("Idempotent-Replayed") != "" {
			t.Fatalf("the first send: %v, %d %+v", err, a.Status, a.Body)
		}
		at.app.mustSend(t, email, 429)
		oneMail(t, at.process, at.relay, email, 1)
		post(at, "/send-code", visit, 200)
		post(at, "/actions/login/take", login, 200)
		post(at, "/actions/login/take", login, 429)
	}
}

// codesAreApart fails the test unless codes, guesses at them and a reset are one's alone. The
// other has been sent nothing yet for this mailbox.
func codesAreApart(t *testing.T, one, other *site, email string) {
	t.Helper()
	verify := func(at *site, code string, status int) {
		t.Helper()
		at.app.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":%q,"code":%q}`, email, code), status)
	}
	one.app.mustSend(t, email, 200)
	verify(other, codeOf(t, one, email), 410) // as where there is no code
	other.app.mustSend(t, email, 200)
	for range 2 {
		verify(one, another(codeOf(t, one, email)), 422)
	}
	verify(one, codeOf(t, one, email), 429) // its guesses are used up, and the other's are not
	verify(other, another(codeOf(t, other, email)), 422)

	newClient(t, one.URL, adminKey).must(t, "POST", "/admin/mailboxes/"+email+"/reset", "", 200)
	one.app.mustSend(t, email, 200)
	other.app.mustSend(t, email, 429)
	verify(other, codeOf(t, other, email), 200)
}

// codeOf is the code in the one mail that the mailbox has got from the server.
func codeOf(t *testing.T, from *site, email string) string {
	t.Helper()
	for _, mail := range from.relay.List() {
		if mail.To[0] == email {
			return sixDigits.FindString(mail.Text + mail.Header.Get("Subject"))
		}
	}
	t.Fatal("the mail with the code did not arrive")
	return ""
}

// What was admitted while Redis was away is told to it under the prefix of who admitted it.
func TestTwoPrefixesInAnOutage(t *testing.T) {
	t.Parallel()
	prefixes := []string{"acme", "zeta"}
	redis, tenants := startTenants(t, permitted, prefixes...)
	for _, tenant := range tenants {
		tenant.app.must(t, "GET", "/readyz", "", 200)
	}
	redis.Kill()
	alone := tenants[0].app.mustSend(t, "alice@example.com", 200)
	tenants[1].app.mustSend(t, "bob@example.com", 200)
	redis.Restart()
	for _, tenant := range tenants {
		servertest.Eventually(t, "the end of the outage", func() bool { return metric(t, tenant.process, "mailgate_store_degraded") == "0" })
	}
	if ids := sends(t, tenants[0].process, "alice@example.com"); len(ids) != 1 || ids[0] != alone.Body.ID {
		t.Errorf("on record is %v, want %s", ids, alone.Body.ID)
	}
	if ids := sends(t, tenants[1].process, "alice@example.com"); len(ids) != 0 {
		t.Errorf("the other knows of %v", ids)
	}
	if held := kinds(t, redis, prefixes); len(held["acme"]) < 4 || len(held["zeta"]) < 4 {
		t.Errorf("they told Redis of %q", held)
	}
	nothingDenied(t, redis)
}

// brief are the kinds of records that are forgotten within a second.
var brief = regexp.MustCompile(`^(standby:|ready$|rule-queue-)`)

// kinds are what the keys of each prefix have between it and the braces. Every key in Redis has
// to begin with one of the prefixes.
func kinds(t *testing.T, redis *redistest.Server, prefixes []string) map[string][]string {
	t.Helper()
	keys, err := redis.Client().Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]map[string]bool{}
	for _, prefix := range prefixes {
		held[prefix] = map[string]bool{}
	}
	for _, key := range keys {
		prefix, rest, _ := strings.Cut(key, ":")
		kind, _, _ := strings.Cut(rest, "{")
		if held[prefix] == nil {
			t.Errorf("a key begins with none of the prefixes: %q", key)
		} else if !brief.MatchString(kind) {
			held[prefix][kind] = true
		}
	}
	sorted := map[string][]string{}
	for prefix, kinds := range held {
		sorted[prefix] = slices.Sorted(maps.Keys(kinds))
	}
	return sorted
}

// nothingDenied fails the test if Redis refused a user something: a command, or a key that does
// not begin with its prefix, however short it was there.
func nothingDenied(t *testing.T, redis *redistest.Server) {
	t.Helper()
	denied, err := redis.Client().ACLLog(context.Background(), 10).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range denied {
		t.Errorf("%s may not use the %s %s", one.Username, one.Reason, one.Object)
	}
}
