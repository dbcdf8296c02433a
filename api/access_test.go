package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
)

func TestKeys_WrongOrAnothers_Unauthorized(t *testing.T) {
	r := newRig(t, setup{})
	for _, route := range routesWithKeys {
		key := route.key()
		other := map[string]string{appKey: opsKey, opsKey: appKey}[key]
		for _, header := range []string{
			"", "Bearer", "Bearer ", "Bearer  " + key, "Bearer x", "Bearer " + other,
			"Bearer " + key + "x", "Bearer " + key[1:], "Bearer " + strings.ToUpper(key), "Basic " + key, key, "Bearer shop:" + key,
		} {
			w := r.dial(route.method + " " + route.path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nAuthorization:" + header + "\r\n\r\n{}")
			got := w.read(route.method, route.path)
			got.is(t, 401, "unauthorized")
			got.carries(t, map[string]string{"WWW-Authenticate": "Bearer"})
		}
		for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
			if got := r.request(route.method, route.path, http.Header{"Authorization": {scheme + " " + key}}, ""); got.status == 401 {
				t.Errorf("%s: its own key was refused", route.path)
			}
		}
	}
	r.do("GET", "/mailboxes/keys@example.com", "another-key", "").logged(t, fields{"key": "blog"})
	r.sent(0)
}

// behindProxy has clients come through proxies of this machine and of a network.
func behindProxy(o *apitest.Options) {
	o.Access.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
}

// The log has the address of the client, which only trusted proxies may state.
func TestForwardedFor_OnlyByTrustedProxies_Believed(t *testing.T) {
	stranger := newRig(t, setup{options: func(o *apitest.Options) {
		o.Access.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	}})
	stranger.request("GET", "/livez", http.Header{"X-Forwarded-For": {"203.0.113.9"}}, "").logged(t, fields{"from": "127.0.0.1"})
	r := newRig(t, setup{options: behindProxy})
	for _, tt := range []struct {
		forwarded []string
		want      string
	}{
		{nil, "127.0.0.1"},
		{[]string{"203.0.113.9"}, "203.0.113.9"},
		{[]string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"}, // the client wrote the first
		{[]string{"1.1.1.1", "203.0.113.9"}, "203.0.113.9"},
		{[]string{"1.1.1.1, 203.0.113.9, 10.1.2.3"}, "203.0.113.9"},
		{[]string{"203.0.113.9, unknown"}, "127.0.0.1"},
		{[]string{"2001:db8::9"}, "2001:db8::9"},
		{[]string{"::ffff:203.0.113.9"}, "203.0.113.9"},
	} {
		r.request("GET", "/livez", http.Header{"X-Forwarded-For": tt.forwarded}, "").logged(t, fields{"from": tt.want})
	}
}

// No spelling of an operator's path is open to an application's key.
func TestPaths_OtherSpellings_Refused(t *testing.T) {
	r := newRig(t, setup{})
	for _, path := range []string{
		"/admin/figures", "/ADMIN/figures", "/admin//figures", "/admin/./figures", "/x/../admin/figures", "/admin%2ffigures", "/%61dmin/figures",
		"/admin/figures/", "/admin/figures%00", "/admin/figures;x", "/admin/figures?x=1", "/mailboxes/a@example.com/../../admin/figures",
		"/mailboxes/..%2fadmin%2ffigures", "/admin/console/..%2f..%2fserver.go", "/admin/console/%2e%2e", "/countdown/..%2f..%2fadmin%2ffigures", "http://x/admin/figures",
	} {
		w := r.dial("GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + appKey + "\r\n\r\n")
		if got := w.answer("GET"); got.status < 400 || strings.Contains(got.text, "sends") {
			t.Errorf("%s: %d %s", path, got.status, got.text)
		}
	}
}

// The name of a mailbox or a subject in logs is the same on all servers with one secret, and cannot be
// made of the address alone.
func TestLog_Names_NeedTheSecret(t *testing.T) {
	const of = "alice@example.com"
	var seen []string
	for _, secret := range []string{"a secret that all share", "a secret that all share", "the secret of others"} {
		r := newRig(t, setup{actions: twoActions, options: func(o *apitest.Options) { o.Secret = []byte(secret) }})
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

// While the audit log cannot be written, an operator resets nothing, and changes no suppression.
func TestOperator_AuditLogStalls_NothingDone(t *testing.T) {
	r := newRig(t, setup{actions: twoActions, rules: ruleForEach, options: func(o *apitest.Options) {
		o.Audit.Ready = func(context.Context) error { return context.DeadlineExceeded }
	}})
	r.send("elsewhere@example.com").is(t, 200, "")
	for _, route := range routesWithKeys {
		if strings.HasSuffix(route.path, "/reset") || route.method == "PUT" || route.method == "DELETE" {
			got := r.do(route.method, route.path, route.key(), route.body)
			got.is(t, 503, "store-unavailable")
			got.says(t, fields{"detail": "The audit log cannot be written. Nothing was done."})
		}
	}
	r.charged("elsewhere@example.com", 1)
	r.do("GET", "/admin/suppressions", opsKey, "").contains(t, `"suppressions":[]`)
}

// A reason with line ends is one line.
func TestReset_HostileReason_IsOneLine(t *testing.T) {
	r := newRig(t, setup{})
	const reason = "done\n{\"msg\":\"forged\"}\r\u2028\x1b[2J"
	got := r.do("POST", "/admin/mailboxes/a@example.com/reset", opsKey, `{"reason":`+string(must.Get(json.Marshal(reason))(t))+`}`)
	got.is(t, 200, "")
	got.logged(t, fields{"msg": "mailbox reset", "reason": reason}, fields{})
}
