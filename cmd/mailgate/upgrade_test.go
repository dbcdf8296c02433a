package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// firstOfFormat is the commit that began the format of records in force. It stands for the last version until one
// has a tag; a change of recordFormat names another.
const firstOfFormat = "12908513"

// earlier builds the last version that has a tag, and returns what launch runs it through.
func earlier(t *testing.T) []string {
	t.Helper()
	if os.Getenv("MAILGATE_TEST_LONG") == "" {
		t.Skip("it builds another version; make long runs it")
	}
	version := firstOfFormat
	if tag, err := exec.Command("git", "describe", "--tags", "--abbrev=0").Output(); err == nil {
		version = string(bytes.TrimSpace(tag))
	}
	if exec.Command("git", "cat-file", "-e", version+"^{commit}").Run() != nil {
		t.Skip("the history of this copy does not have " + version)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "earlier")
	build := exec.Command("sh", "-ec", `cd "$(git rev-parse --show-toplevel)"; git archive "$1" | tar -x -C "$2"; cd "$2"; go build -o "$3" ./cmd/mailgate`, "sh", version, dir, program)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", version, err, text)
	}
	t.Logf("beside %s", version)
	return []string{"sh", "-c", `shift; exec "$0" "$@"`, program} // which drops the name of this program
}

// codeTo returns the code in the newest email to an address.
func codeTo(t testing.TB, relay *sandbox.Server, email string) (code string) {
	t.Helper()
	for _, mail := range relay.List() {
		if mail.To[0] == email {
			code = sixDigits.FindString(mail.Text)
		}
	}
	if code == "" {
		t.Fatalf("no code was sent to %s", email)
	}
	return code
}

// onceAnHour is a limit that outlasts these tests.
const onceAnHour = "MAILGATE_TIERS=hour=1/1h"

// What is promised of versions with one format of records: nodes of both may run, and either may follow the other.
func TestUpgrade_EarlierVersionAndThis_HoldTheLimits(t *testing.T) {
	through := earlier(t)
	t.Run("side by side", func(t *testing.T) { sideBySide(t, through) })
	t.Run("one after the other", func(t *testing.T) { oneAfterTheOther(t, through) })
}

// Nodes of two versions beside one Redis are one: no limit is exceeded, and each knows the other's codes, answers and
// suppressions.
func sideBySide(t *testing.T, through []string) {
	redis, relay := redistest.Durable(t), startRelay(t)
	nodes := []*process{launch(t, through, besideRedis(t, redis, relay.URL(), onceAnHour), "serve").serving(t), startServer(t, besideRedis(t, redis, relay.URL(), onceAnHour))}
	const mailboxes, each = 200, 4
	var asked sync.WaitGroup
	for i, node := range nodes {
		app := newClient(t, node.URL, apiKey)
		for lane := range 8 {
			asked.Go(func() {
				for n := lane; n < mailboxes*each; n += 8 {
					answer, err := app.ask("POST", "/send-code", bodyFor(fmt.Sprintf("m%d@example.com", n%mailboxes)), nil)
					if err != nil || answer.Status != 200 && answer.Status != 429 {
						t.Errorf("node %d: %v, %d %s", i, err, answer.Status, answer.Raw)
					}
				}
			})
		}
	}
	asked.Wait()
	if sent := len(relay.List()); sent != mailboxes {
		t.Errorf("%d mailboxes got %d emails", mailboxes, sent)
	}
	for i, node := range nodes {
		app, other := newClient(t, node.URL, apiKey), newClient(t, nodes[1-i].URL, apiKey)
		email := fmt.Sprintf("of%d@example.com", i)
		first, err := app.sendOnce(email, email)
		second, err2 := other.sendOnce(email, email)
		if err != nil || err2 != nil || first.Status != 200 || second.Raw != first.Raw || second.Header.Get("Idempotent-Replayed") == "" {
			t.Errorf("%v, %v: the answer of node %d is %s, at the other %s", err, err2, i, first.Raw, second.Raw)
		}
		other.mustVerify(t, email, codeTo(t, relay, email), 200)
		suppressed := fmt.Sprintf("never%d@example.com", i)
		newClient(t, node.URL, adminKey).must(t, http.MethodPut, "/admin/suppressions/"+suppressed, `{}`, 204)
		servertest.Eventually(t, "the entry at the other node", func() bool {
			return tries(t, other, "POST", "/send-code", bodyFor(suppressed)) == 422
		})
	}
}

// Two versions, one after the other, on one data directory: what one has recorded holds with the other, in both
// directions, after an orderly end and a kill.
func oneAfterTheOther(t *testing.T, through []string) {
	relay := startRelay(t)
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+t.TempDir(), onceAnHour)
	var before []string
	for i, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM} {
		var version []string // this one
		if i%2 == 0 {
			version = through
		}
		node := launch(t, version, environ, "serve").serving(t)
		app := newClient(t, node.URL, apiKey)
		for _, email := range before {
			app.mustSend(t, email, 429)
		}
		if len(before) > 0 {
			last := before[len(before)-1]
			app.mustVerify(t, last, codeTo(t, relay, last), 200)
		}
		email := fmt.Sprintf("m%d@example.com", i)
		app.mustSend(t, email, 200)
		before = append(before, email)
		node.Stop(t, end)
	}
}
