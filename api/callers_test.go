package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/api"
)

// A key with the most requests in progress that it may have gets a 503 at once, and nothing is charged.
// Other keys and operators are answered.
func TestCaller_Full_LeavesRoomForOthers(t *testing.T) {
	const most = 4
	sender := newGated()
	r := newRig(t, setup{options: func(o *api.Options) {
		o.MaxConnections = 4 * most
		o.Relay = sender
	}})
	var group sync.WaitGroup
	for n := range most {
		group.Go(func() { r.send(fmt.Sprintf("flood%d@example.com", n)).is(t, 200, "") })
		<-sender.entered
	}
	for path, body := range map[string]string{
		"POST /send-code": `{"email":"one-more@example.com"}`, "GET /mailboxes/one-more@example.com": "",
		"POST /verify-code":           `{"email":"one-more@example.com","code":"123456"}`,
		"POST /actions/reply/take":    `{"subject":"one-more"}`,
		"POST /actions/reply/peek":    `{"subject":"one-more"}`,
		"POST /actions/reply/release": `{"subject":"one-more","id":"AAAAAAAA"}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		got := r.do(method, path, appKey, body)
		got.is(t, 503, "busy")
		if got.header.Get("Retry-After") != "1" {
			t.Errorf("%s: Retry-After is %q", path, got.header.Get("Retry-After"))
		}
		r.do("GET", "/mailboxes/one-more@example.com", "another-key", "").is(t, 200, "")
		r.do("GET", "/admin/mailboxes/one-more@example.com", opsKey, "").is(t, 200, "")
		r.do("GET", "/readyz", "", "").is(t, 200, "")
	}
	if n := r.used("one-more@example.com"); n != 0 {
		t.Errorf("%d sends are charged", n)
	}
	if text := r.do("GET", "/metrics", "", "").text; !strings.Contains(text, `mailgate_sends_total{limit="",outcome="busy",rule=""} 1`+"\n") {
		t.Errorf("not one send is counted as busy:\n%s", text)
	}
	close(sender.leave)
	group.Wait()
	for range 2 * most {
		r.do("GET", "/mailboxes/one-more@example.com", appKey, "").is(t, 200, "")
	}
}
