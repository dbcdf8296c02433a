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
	redis, relay := redistest.Durable(t), startRelay(t)
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
	other.Stop(t, syscall.SIGKILL)
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
	server.Stop(t, syscall.SIGKILL)
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
	node.Stop(t, syscall.SIGTERM)
	node, operator = start(shared, map[string]int{"kept@example.com": suppressed, "lifted@example.com": suppressed})
	if lines := node.Log.Lines("is in Redis now"); len(lines) != 1 || lines[0]["added"] != 2.0 {
		t.Errorf("the log says %v", lines)
	}
	operator.must(t, http.MethodDelete, "/admin/suppressions/lifted@example.com", "", 204)
	operator.suppress(t, "shared@example.com", 204)
	node.Stop(t, syscall.SIGTERM)
	node, _ = start(alone, map[string]int{"kept@example.com": suppressed, "lifted@example.com": lifted, "shared@example.com": suppressed})
	node.Stop(t, syscall.SIGTERM)
	node, _ = start(shared, map[string]int{"kept@example.com": suppressed, "shared@example.com": suppressed})
	if lines := node.Log.Lines("is in Redis now"); len(lines) != 0 {
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
	list := filepath.Join(dir, "list")
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200) // so that the next one would have to wait
	for _, text := range []string{
		table,
		"\ufeff\"email\",\"reason\"\r\n\"alice@example.com\",\"550 5.1.1 no such, user\"\r\n",
		"status,reason,email,created\n5.1.1,\"550 5.1.1 no such, user\",alice@example.com,1417855188\n",
		"ip,Email ,created\n192.0.2.1,alice@example.com,1417855188\n",
		"address,code,error,created_at\r\nalice@example.com,550,No such mailbox,\"Fri, 20 Nov 2026 12:00:00 UTC\"\r\n",
		"\ufeffalice@example.com,COMPLAINT\n",
		"Email address,Suppression reason,Last updated\nalice@example.com,COMPLAINT,x\n",
	} {
		servertest.Write(t, list, text+"no address\n")
		does(t, environ, exitOK, "suppressed: 1; rows left out: 1\n", "suppress", "--import", list, "--reason", "hard-bounce")
		does(t, environ, exitOK, "suppressed  hard-bounce until 20", "show", "alice@example.com")
		does(t, environ, exitOK, "next        -\n", "show", "alice@example.com")
		does(t, environ, exitOK, "", "unsuppress", "alice@example.com")
	}
	does(t, environ, exitFailure, "source has a control character", "suppress", "a@example.com", "--source", "a\u202eb")
	// A mistake in the file is found before anything is suppressed.
	for text, want := range map[string]string{
		"email,reason\na@example.com,BOUNCE\nb@example.com,\"open\nc@example.com,BOUNCE\n":   "record on line 3",
		"email,reason\na@example.com,BOUNCE\nb@example.com,b\"are\nc@example.com,BOUNCE\n":   "line 3, column 16",
		"email,reason\ra@example.com,BOUNCE\rb@example.com,BOUNCE\r":                         "end with CR alone",
		"a@example.com\rb@example.com\r":                                                     "end with CR alone",
		"status,reason,created\n":                                                            "no column is named email",
		"status,recipient\n5.1.1,a@example.com\n":                                            "no row has a valid address",
		"email;reason\nalice@example.com;BOUNCE\n":                                           "no row has a valid address",
		"\"smtp; 550 user@example.com unknown\",a@example.com\n5.1.1,user@example.com\n":     "no row has a valid address",
		"550,smtp; 550 user@example.com,a@example.com\n550,user@example.com,a@example.com\n": "no row has a valid address",
	} {
		servertest.Write(t, list, text)
		does(t, environ, exitMisusage, want, "suppress", "--import", list, "--reason", "manual")
	}
	servertest.Write(t, list, "a@example.com\n")
	does(t, environ, exitMisusage, "--import needs a --reason", "suppress", "--import", list)
	if all := does(t, environ, exitOK, "EMAIL  REASON", "suppressions"); strings.Contains(all, "@") {
		t.Errorf("a file with a mistake suppresses %s", all)
	}
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
	does(t, environ, exitOK, "suppressed: 5\n", "suppress", "--import", again, "--reason", "manual")
	for email := range odd {
		does(t, environ, exitOK, email, "suppressions")
	}
	for email := range odd {
		does(t, environ, exitOK, "", "unsuppress", "--", email)
	}
	does(t, environ, exitMisusage, "expected an email address or --import", "suppress")
	does(t, environ, exitFailure, "422", "suppress", "alice")
	does(t, environ, exitFailure, "no such file", "suppress", "--import", filepath.Join(dir, "none"), "--reason", "manual")
	if audit := server.Log.Lines(`"source":"ticket, 4711"`); len(audit) != 1 {
		t.Errorf("the audit log has %v", audit)
	}
}
