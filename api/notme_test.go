package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/message"
)

// notMeOn has the link in the default template.
func notMeOn(t testing.TB) func(*apitest.Options) {
	own := fstest.MapFS{"code/en/text.txt": {Data: []byte("{{.Code}}\nNot you? {{.NotMe}}\n")}}
	return func(o *apitest.Options) {
		o.PublicURL = "https://mail.acme.example/"
		o.Live.Composer = must.Get(message.NewComposer(must.Get(message.ParseSender("Acme <no-reply@acme.example>"))(t), must.Get(message.LoadTemplates(own, "en"))(t)))(t)
	}
}

var notMeLink = regexp.MustCompile(`https://mail\.acme\.example(/not-me/\S+)`)

// By the link of an email its recipient stops all of them for a week, and takes that back. Opening it changes nothing.
func TestNotMe_Link_StopsAndUndoes(t *testing.T) {
	r := newRig(t, setup{policy: "day=100/24h", options: notMeOn(t)})
	link := func(email, rest string) string {
		r.sendAs(appKey, email, rest).is(t, 200, "")
		return notMeLink.FindStringSubmatch(r.Relay.List()[len(r.Relay.List())-1].Text)[1]
	}
	path := link("Alice+x@example.com", `,"client_ip":"203.0.113.7"`)
	chinese := http.Header{"Accept-Language": {"zh-CN,zh;q=0.9"}}
	for range 2 {
		r.do("GET", path, "", "").contains(t, "It wasn't me: stop these emails", "Someone entered a•••@example.com at Acme.", `<html lang="en">`)
		r.request("GET", path, chinese, "").contains(t, "不是我：停止这类邮件", "有人在 Acme 输入了您的邮箱 a•••@example.com。", `<html lang="zh">`)
	}
	link("alice@example.com", "")
	for range 2 {
		r.request("POST", path, nil, "").contains(t, "These emails are stopped", "a•••@example.com gets no such emails from Acme", path+"/undo")
	}
	r.send("alice@example.com").says(t, fields{"type": "/docs#recipient-suppressed", "reason": "not-me"})
	r.do("GET", path, "", "").contains(t, "These emails are stopped")
	r.do("GET", "/admin/suppressions", opsKey, "").contains(t, `"reason":"not-me"`, `"source":"link; key shop, visitor `)
	r.do("GET", "/metrics", "", "").contains(t, `mailgate_not_me_total{key="shop"} 1`)
	r.do("PUT", "/admin/suppressions/alice@example.com", opsKey, `{"reason":"manual"}`).is(t, 204, "")
	r.request("POST", path+"/undo", nil, "").contains(t, "Undone", "a•••@example.com gets these emails from Acme again")
	r.send("alice@example.com").says(t, fields{"reason": "manual"})
	r.do("DELETE", "/admin/suppressions/alice@example.com", opsKey, "").is(t, 204, "")
	r.send("alice@example.com").is(t, 200, "")

	r.request("POST", path, nil, "")
	r.now.Add(7 * day)
	r.send("alice@example.com").is(t, 200, "")
	countdown := r.send("bob@example.com").token()
	r.now.Add(23*day - 1)
	for _, wrong := range []string{path[:len(path)-1], path + "A", strings.ToUpper(path), "/not-me/" + countdown, "/not-me/x", "/not-me/%00"} {
		if got := r.request("POST", wrong, nil, ""); got.status != 404 {
			t.Errorf("%s is answered %d", wrong, got.status)
		}
	}
	r.do("GET", "/countdown/"+strings.TrimPrefix(path, "/not-me/"), "", "").is(t, 404, "unknown-countdown")
	r.do("GET", path, "", "").contains(t, "It wasn't me")
	r.now.Add(1)
	for _, verb := range []string{"GET", "POST"} {
		if got := r.request(verb, path, nil, ""); got.status != 404 || !strings.Contains(got.text, "This link is not valid") {
			t.Errorf("an old link is answered %d %s", got.status, got.text)
		}
	}
	fresh := link("carol@example.com", "")
	_ = r.Store.Close()
	for _, end := range []string{"", "/undo"} {
		if got := r.request("POST", fresh+end, nil, ""); got.status != 503 || !strings.Contains(got.text, "Try again in a minute") {
			t.Errorf("without a store it is answered %d %s", got.status, got.text)
		}
	}
}
