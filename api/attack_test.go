package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
)

// No spelling of an operator's path is open to an application's key.
func TestPaths_OtherSpellings_Refused(t *testing.T) {
	r := newRig(t, setup{})
	for _, path := range []string{
		"/admin/figures", "/ADMIN/figures", "/admin//figures", "/admin/./figures", "/x/../admin/figures", "/admin%2ffigures", "/%61dmin/figures",
		"/admin/figures/", "/admin/figures%00", "/admin/figures;x", "/admin/figures?x=1", "/mailboxes/a@example.com/../../admin/figures",
		"/mailboxes/..%2fadmin%2ffigures", "/admin/console/..%2f..%2fserver.go", "/admin/console/%2e%2e", "/countdown/..%2f..%2fadmin%2ffigures", "http://x/admin/figures",
	} {
		w := r.dial()
		w.write("GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + appKey + "\r\n\r\n")
		response := must(http.ReadResponse(w.reader, nil))(t)
		if text := string(must(io.ReadAll(response.Body))(t)); response.StatusCode < 400 || strings.Contains(text, "sends") {
			t.Errorf("%s: %d %s", path, response.StatusCode, text)
		}
	}
}

// The name of a mailbox or a subject in logs is the same on all servers with one secret, and cannot be
// made of the address alone.
func TestLog_Names_NeedTheSecret(t *testing.T) {
	const of = "alice@example.com"
	var seen []string
	for _, secret := range []string{"a secret that all share", "a secret that all share", "the secret of others"} {
		r := newRig(t, setup{actions: threeActions(&failing{}), options: func(o *api.Options) { o.Secret = []byte(secret) }})
		mailbox := r.do("GET", "/admin/mailboxes/"+of, opsKey, "").body["mailbox"].(string)
		subject := r.do("POST", "/admin/actions/reply/reset", opsKey, `{"subject":"`+of+`"}`).body["subject"].(string)
		seen = append(seen, mailbox+" "+subject)
		plain := sha256.Sum256([]byte(of))
		if guessed := hex.EncodeToString(plain[:5]); mailbox == guessed || subject == guessed || mailbox == subject {
			t.Errorf("the log calls them %s and %s", mailbox, subject)
		}
	}
	if seen[0] != seen[1] || seen[0] == seen[2] {
		t.Errorf("the names are %q", seen)
	}
}

// A reason with line ends is one line.
func TestReset_HostileReason_IsOneLine(t *testing.T) {
	r := newRig(t, setup{})
	const reason = "done\n{\"msg\":\"forged\"}\r\u2028\x1b[2J"
	got := r.do("POST", "/admin/mailboxes/a@example.com/reset", opsKey, `{"reason":`+string(must(json.Marshal(reason))(t))+`}`)
	got.is(t, 200, "")
	lines := journal.about(t, got.header.Get("X-Request-Id"))
	if len(lines) != 2 || lines[0]["msg"] != "mailbox reset" || lines[0]["reason"] != reason {
		t.Errorf("the log says %v", lines)
	}
}
