package main

import (
	"encoding/csv"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

func (c client) suppress(t testing.TB, email string, status int) {
	t.Helper()
	c.must(t, http.MethodPut, "/admin/suppressions/"+email, `{"source":"a test"}`, status)
}

func tries(t testing.TB, c client, method, path, body string) (status int) {
	t.Helper()
	return must.Get(c.ask(method, path, body, nil))(t).Status
}

// What one node suppresses another sends no email a second later. In an outage each decides by what it has,
// also after it was killed, and changes nothing.
func TestSuppression_TwoNodesAndOutage_NothingIsSent(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t, "appendonly yes"), startRelay(t)
	environ := besideRedis(t, redis, relay.URL())
	one, other := startServer(t, besideRedis(t, redis, relay.URL())), startServer(t, environ)
	operator, app := newClient(t, one.URL, adminKey), newClient(t, other.URL, apiKey)
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		operator.suppress(t, email, 204)
		newClient(t, one.URL, apiKey).mustSend(t, email, 422)
	}
	time.Sleep(time.Second) // which is what is promised
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		if r := app.mustSend(t, email, 422); r.Body.Type != "/docs#recipient-suppressed" {
			t.Errorf("the other node answers %s", r.Raw)
		}
	}
	operator.must(t, http.MethodDelete, "/admin/suppressions/c@example.com", "", 204)
	servertest.Eventually(t, "the removal", func() bool { return tries(t, app, http.MethodPost, "/send-code", bodyFor("c@example.com")) == 200 })

	redis.Kill()
	servertest.Eventually(t, "the outage", func() bool { return app.must(t, "GET", "/readyz", "", 200).Body.Degraded })
	app.mustSend(t, "a@example.com", 422)
	operator.suppress(t, "d@example.com", 503)
	operator.must(t, http.MethodDelete, "/admin/suppressions/a@example.com", "", 503)
	other.stop(t, syscall.SIGKILL)
	other = startServer(t, environ)
	app = newClient(t, other.URL, apiKey)
	app.mustSend(t, "b@example.com", 422)
	app.mustSend(t, "d@example.com", 200)

	redis.Restart()
	servertest.Eventually(t, "the end of the outage", func() bool {
		return tries(t, operator, http.MethodPut, "/admin/suppressions/d@example.com", "{}") == 204
	})
	servertest.Eventually(t, "the change at the other node", func() bool { return tries(t, app, http.MethodPost, "/send-code", bodyFor("d@example.com")) == 422 })
	if n := len(relay.List()); n != 2 {
		t.Errorf("%d emails were sent, want those to c and d", n)
	}
}

// A killed node keeps the list, and so does a backup.
func TestSuppression_KilledAndRestored_Kept(t *testing.T) {
	t.Parallel()
	dir, relay := t.TempDir(), startRelay(t)
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+filepath.Join(dir, "data"))
	server := startServer(t, environ)
	newClient(t, server.URL, adminKey).suppress(t, "alice@example.com", 204)
	server.stop(t, syscall.SIGKILL)
	server = startServer(t, environ)
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 422)
	does(t, environ, exitOK, "records are in", "backup", filepath.Join(dir, "copy"))
	environ = append(environ, "MAILGATE_DATA_DIR="+filepath.Join(dir, "restored"))
	does(t, environ, exitOK, "records are restored", "restore", filepath.Join(dir, "copy"))
	server = startServer(t, environ)
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 422)
	if n := len(relay.List()); n != 0 {
		t.Errorf("%d emails were sent", n)
	}
}

// A node that moves from its disk to Redis brings its list along, once. Back on its disk it has what Redis last had.
func TestSuppression_DiskToRedisAndBack_Kept(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	shared := besideRedis(t, redis, relay.URL())
	alone := slices.DeleteFunc(slices.Clone(shared), func(s string) bool { return strings.HasPrefix(s, "MAILGATE_REDIS_") })
	start := func(environ []string, want map[string]int) (p *process, operator client) {
		t.Helper()
		p = startServer(t, environ)
		for email, status := range want {
			newClient(t, p.URL, apiKey).mustSend(t, email, status)
		}
		return p, newClient(t, p.URL, adminKey)
	}
	suppressed, lifted := http.StatusUnprocessableEntity, http.StatusOK

	node, operator := start(alone, nil)
	for _, email := range []string{"kept@example.com", "lifted@example.com"} {
		operator.suppress(t, email, 204)
	}
	node.stop(t, syscall.SIGTERM)
	node, operator = start(shared, map[string]int{"kept@example.com": suppressed, "lifted@example.com": suppressed})
	if lines := node.log.lines("is in Redis now"); len(lines) != 1 || lines[0]["added"] != 2.0 {
		t.Errorf("the log says %v", lines)
	}
	operator.must(t, http.MethodDelete, "/admin/suppressions/lifted@example.com", "", 204)
	operator.suppress(t, "shared@example.com", 204)
	node.stop(t, syscall.SIGTERM)
	node, _ = start(alone, map[string]int{"kept@example.com": suppressed, "lifted@example.com": lifted, "shared@example.com": suppressed})
	node.stop(t, syscall.SIGTERM)
	node, _ = start(shared, map[string]int{"kept@example.com": suppressed, "shared@example.com": suppressed})
	if lines := node.log.lines("is in Redis now"); len(lines) != 0 {
		t.Errorf("a list that Redis had is brought there: %v", lines)
	}
}

// The list is changed by hand, exported, and imported again.
func TestSuppression_ByHand_ChangedAndPrinted(t *testing.T) {
	t.Parallel()
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory))
	environ := operatorOf(server.URL)
	does(t, environ, exitOK, "suppressed: 1\n", "suppress", "Alice+x@example.com", "--source", "ticket, 4711")
	does(t, environ, exitOK, ", source ticket, 4711\n", "show", "alice@example.com")
	does(t, environ, exitOK, "alice@example.com  manual", "suppressions")
	does(t, environ, exitOK, `{"email":"alice@example.com","reason":"manual","until":null,"source":"ticket, 4711","since":"20`, "suppressions", "--json")
	table := does(t, environ, exitOK, "email,reason,until,since,source\nalice@example.com,manual,,20", "suppressions", "--csv")
	does(t, environ, exitOK, `{"changed":1,"invalid":0}`, "unsuppress", "--json", "alice@example.com")
	does(t, environ, exitOK, "EMAIL  REASON", "suppressions")
	does(t, environ, exitOK, `{"changed":0,"invalid":0}`, "unsuppress", "--json", "alice@example.com")
	does(t, environ, exitOK, "removed from the list: 0\n", "unsuppress", "alice@example.com")

	dir := t.TempDir()
	for name, file := range map[string]struct{ text, reason string }{
		"own":        {table, "manual"},
		"sendgrid":   {"status,reason,email,created\n5.1.1,\"550 5.1.1 no such, user\",alice@example.com,1417855188\n", "hard-bounce until 20"},
		"spam":       {"ip,email,created\n192.0.2.1,alice@example.com,1417855188\n", "complaint"},
		"mailgun":    {"address,code,error,created_at\r\nalice@example.com,550,No such mailbox,\"Fri, 20 Nov 2026 12:00:00 UTC\"\r\n", "hard-bounce until 20"},
		"ses":        {"\ufeffalice@example.com,COMPLAINT\n", "complaint"},
		"ses, named": {"Email address,Suppression reason,Last updated\nalice@example.com,BOUNCE,x\n", "hard-bounce until 20"},
	} {
		path := filepath.Join(dir, name)
		servertest.Write(t, path, file.text+"no address,,,\n")
		does(t, environ, exitOK, "suppressed: 1; rows left out: 1\n", "suppress", "--import", path)
		does(t, environ, exitOK, "suppressed  "+file.reason, "show", "alice@example.com")
		does(t, environ, exitOK, "next        -\n", "show", "alice@example.com")
		does(t, environ, exitOK, "", "unsuppress", "alice@example.com")
	}
	// SendGrid's bounces and its blocks have the same columns: only what its status calls unknown is a hard bounce.
	blocks, blocked := filepath.Join(dir, "blocks"), "status,reason,email,created\n5.7.1,\"550 5.7.1 spam, \"\"no\"\"\",b@example.com,1\n5.1.1,x,a@example.com,1\n550,x,c@example.com,1\n,x,d@example.com,1\n"
	servertest.Write(t, blocks, blocked)
	does(t, environ, exitOK, "suppressed: 1; rows left out: 3\n", "suppress", "--import", blocks)
	does(t, environ, exitOK, "a@example.com  hard-bounce", "suppressions")
	does(t, environ, exitOK, "suppressed: 4\n", "suppress", "--import", blocks, "--reason", "manual")
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com", "d@example.com"} {
		does(t, environ, exitOK, "", "unsuppress", email)
	}
	// A temporary failure is no hard bounce, whoever exports it.
	for _, list := range []string{"address,code,error,created_at\na@example.com,452,full,x\nb@example.com,550,x,x\n", "status,reason,email,created\n4.2.2,full,a@example.com,1\n5.1.1,x,b@example.com,1\n", "email,reason,code\na@example.com,BOUNCE,421\nb@example.com,BOUNCE,605\n"} {
		servertest.Write(t, blocks, list)
		does(t, environ, exitOK, "suppressed: 1; rows left out: 1\n", "suppress", "--import", blocks)
		does(t, environ, exitOK, "removed from the list: 1\n", "unsuppress", "b@example.com")
		does(t, environ, exitOK, "suppressed: 2\n", "suppress", "--import", blocks, "--reason", "manual")
		for _, email := range []string{"a@example.com", "b@example.com"} {
			does(t, environ, exitOK, "removed from the list: 1\n", "unsuppress", email)
		}
	}
	does(t, environ, exitFailure, "source has a control character", "suppress", "a@example.com", "--source", "a\u202eb")
	// A mistake in the file is found before anything is suppressed.
	for text, want := range map[string]string{
		"email,reason\na@example.com,BOUNCE\nb@example.com,\"open\nc@example.com,BOUNCE\n":   "record on line 3",
		"email,reason\na@example.com,BOUNCE\nb@example.com,b\"are\nc@example.com,BOUNCE\n":   "line 3, column 16",
		"email,reason\na@example.com,BOUNCE\nb@example.com,\nc@example.com,BOUNCE\n":         "row 3 does not say why",
		"\"smtp; 550 user@example.com unknown\",a@example.com\n5.1.1,user@example.com\n":     "no row has a valid address",
		"550,smtp; 550 user@example.com,a@example.com\n550,user@example.com,a@example.com\n": "no row has a valid address",
	} {
		servertest.Write(t, blocks, text)
		does(t, environ, exitMisusage, want, "suppress", "--import", blocks)
	}
	if list := does(t, environ, exitOK, "EMAIL  REASON", "suppressions"); strings.Contains(list, "@") {
		t.Errorf("a file with a mistake suppresses %s", list)
	}
	semicolons := filepath.Join(dir, "semicolons")
	servertest.Write(t, semicolons, "email;reason\nalice@example.com;BOUNCE\n")
	does(t, environ, exitMisusage, "no row has a valid address", "suppress", "--import", semicolons)
	// No cell is a formula to a spreadsheet, and the import reads them as they were.
	odd := map[string]string{"=cmd|x@example.com": "=1+1", "+1@example.com": "@x", "-1@example.com": "'=x", "'=1@example.com": "-x", "'o@example.com": "o"}
	for email, source := range odd {
		does(t, environ, exitOK, "suppressed: 1\n", "suppress", "--source="+source, "--", email)
	}
	table = does(t, environ, exitOK, "'=cmd|x@example.com,manual,,20", "suppressions", "--csv")
	for _, row := range must.Get(csv.NewReader(strings.NewReader(table)).ReadAll())(t) {
		for _, cell := range row {
			if strings.ContainsAny(cell[:min(1, len(cell))], "=+-@\t\r") {
				t.Errorf("a spreadsheet runs %s", cell)
			}
		}
	}
	for email := range odd {
		does(t, environ, exitOK, "", "unsuppress", "--", email)
	}
	again := filepath.Join(dir, "again")
	servertest.Write(t, again, table)
	does(t, environ, exitOK, "suppressed: 5\n", "suppress", "--import", again)
	for email := range odd {
		does(t, environ, exitOK, email, "suppressions")
	}
	for email := range odd {
		does(t, environ, exitOK, "", "unsuppress", "--", email)
	}
	complaints := filepath.Join(dir, "complaints")
	servertest.Write(t, complaints, "address,created_at\nalice@example.com,x\n")
	does(t, environ, exitMisusage, "row 2 does not say why", "suppress", "--import", complaints)
	does(t, environ, exitOK, "suppressed: 1\n", "suppress", "--import", complaints, "--reason", "complaint")
	does(t, environ, exitMisusage, "expected an email address or --import", "suppress")
	does(t, environ, exitFailure, "422", "suppress", "alice")
	does(t, environ, exitFailure, "no such file", "suppress", "--import", filepath.Join(dir, "none"))
	if audit := server.log.lines(`"source":"ticket, 4711"`); len(audit) != 1 {
		t.Errorf("the audit log has %v", audit)
	}
}
