package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/apikey"
)

type route struct{ method, path, body string }

// key opens the route.
func (r route) key() string {
	if strings.HasPrefix(r.path, "/admin") {
		return opsKey
	}
	return appKey
}

// routesWithKeys are the routes that ask for a key, where there are any.
var routesWithKeys = []route{
	{"POST", "/send-code", `{"email":"elsewhere@example.com"}`},
	{"POST", "/verify-code", `{"email":"elsewhere@example.com","code":"123456"}`},
	{"GET", "/mailboxes/elsewhere@example.com", ""},
	{"POST", "/mailboxes/peek", `{"email":"elsewhere@example.com"}`},
	{"GET", "/admin/mailboxes/elsewhere@example.com", ""},
	{"POST", "/admin/mailboxes/elsewhere@example.com/reset", ""},
	{"POST", "/admin/mailboxes/elsewhere@example.com/reset", `{"reason":"none"}`},
	{"GET", "/admin/suppressions", ""},
	{"PUT", "/admin/suppressions/elsewhere@example.com", `{"reason":"not-me"}`},
	{"DELETE", "/admin/suppressions/elsewhere@example.com", ""},
	{"GET", "/admin/requests", ""},
	{"GET", "/admin/requests?email=elsewhere@example.com", ""},
	{"GET", "/admin/requests/refused", ""},
	{"GET", "/admin/figures", ""},
	{"POST", "/admin/what-if", `{"tiers":"hour=1/1h"}`},
	{"POST", "/actions/reply/take", `{"subject":"another-page"}`},
	{"POST", "/actions/reply/peek", `{"subject":"another-page"}`},
	{"POST", "/actions/reply/release", `{"subject":"another-page","id":"tWudQhxQ"}`},
	{"POST", "/admin/actions/reply/reset", `{"subject":"another-page"}`},
	{"POST", "/admin/rules/domain-rule/peek", `{"subject":"example.com"}`},
	{"POST", "/admin/rules/domain-rule/reset", `{"subject":"example.com"}`},
}

// openRoutes need no key, and tell something.
var openRoutes = []string{"/readyz", "/metrics", "/docs", "/openapi.yaml", "/openapi.json", "/admin", "/admin/console/console.js", "/countdown/none", "/countdown.js"}

func keyless(o *apitest.Options) { o.Access.APIKeys, o.Access.AdminKeys = apikey.Keys{}, apikey.Keys{} }

// Where no key is asked for, a page that is open in a browser on this machine is no caller, by any name
// of the server.
func TestNoKeys_OtherPagesAndProxies_Forbidden(t *testing.T) {
	r := newRig(t, setup{options: keyless, actions: twoActions})
	r.send("elsewhere@example.com").is(t, 200, "")
	tests := []struct{ name, host, headers string }{
		{"a name that was bound to this machine", "evil.example:8080", ""},
		{"and its own page", "evil.example", "Origin: http://evil.example\r\nSec-Fetch-Site: same-origin\r\n"},
		{"a name that begins like an address", "127.0.0.1.evil.example", ""},
		{"a name that begins like localhost", "localhost.evil.example", ""},
		{"an address that is not loopback", "10.0.0.1:8080", ""},
		{"any address", "0.0.0.0:8080", ""},
		{"a port that there is not", "localhost:99999", ""},
		{"a page from elsewhere", "localhost:8080", "Origin: https://evil.example\r\n"},
		{"a page without an origin", "localhost:8080", "Origin: null\r\n"},
		{"another port of this machine", "localhost:8080", "Origin: http://localhost:3000\r\n"},
		{"an origin that begins alike", "localhost", "Origin: http://localhost.evil.example\r\n"},
		{"an empty origin", "localhost", "Origin:\r\n"},
		{"two origins", "localhost", "Origin: http://localhost\r\nOrigin: https://evil.example\r\n"},
		{"a form or picture from elsewhere", "127.0.0.1", "Sec-Fetch-Site: cross-site\r\n"},
		{"a sibling's", "127.0.0.1", "Sec-Fetch-Site: same-site\r\n"},
		{"two words on it", "127.0.0.1", "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n"},
		{"a proxy of this machine, for a stranger", "127.0.0.1:8080", "X-Forwarded-For: 203.0.113.9\r\n"},
		{"another's word for it", "127.0.0.1:8080", "X-Real-IP: 203.0.113.9\r\n"},
		{"the standard's", "127.0.0.1:8080", "Forwarded: for=203.0.113.9\r\n"},
		{"an empty one", "127.0.0.1:8080", "X-Forwarded-For:\r\n"},
		{"a proxy that says what it was asked for", "localhost", "X-Forwarded-Host: mail.acme.example\r\n"},
		{"or how", "localhost", "x-forwarded-proto: https\r\n"},
		{"a proxy that says itself", "localhost", "Via: 1.1 proxy\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, route := range routesWithKeys {
				r.ask(route.method, route.path, tt.host, tt.headers, route.body).is(t, 403, "forbidden")
			}
		})
	}
	for _, path := range openRoutes {
		for _, tt := range tests[:7] {
			r.ask("GET", path, tt.host, tt.headers, "").is(t, 403, "forbidden")
		}
		r.ask("GET", path, "127.0.0.1:8080", "X-Forwarded-For: 203.0.113.9\r\n", "").is(t, 403, "forbidden")
	}
	for _, host := range []string{"", "::1", "evil@localhost"} {
		r.ask("POST", "/send-code", host, "", routesWithKeys[0].body).is(t, 400, "bad-request")
	}
	r.sent(1)
	r.charged("elsewhere@example.com", 1)
	r.ask("GET", "/livez", "evil.example", "Origin: null\r\n", "").is(t, 200, "")
}

// Programs of this machine are callers, and so is a page of the server itself.
func TestNoKeys_ThisMachine_Allowed(t *testing.T) {
	r := newRig(t, setup{options: keyless, actions: twoActions})
	tests := []struct{ host, headers string }{
		{"localhost", ""},
		{"LOCALHOST:8090", ""},
		{"127.0.0.1:8080", ""},
		{"127.8.9.10", ""},
		{"[::1]", ""},
		{"[::1]:8080", ""},
		{"localhost:8080", "Origin: http://localhost:8080\r\nSec-Fetch-Site: same-origin\r\n"},
		{"[::1]:8080", "Origin: http://[::1]:8080\r\n"},
		{"localhost", "Sec-Fetch-Site: none\r\n"},
		{"localhost", "Authorization: Bearer whatever\r\n"},
	}
	for _, tt := range tests {
		for _, route := range routesWithKeys {
			if got := r.ask(route.method, route.path, tt.host, tt.headers, route.body); got.status == 401 || got.status == 403 {
				t.Errorf("%s %s at %s %q: %d %s", route.method, route.path, tt.host, tt.headers, got.status, got.text)
			}
		}
	}
	for _, path := range openRoutes {
		// A link may lead to it, and a page of another port shows a countdown.
		if got := r.ask("GET", path, "localhost:8080", "Origin: http://localhost:3000\r\nSec-Fetch-Site: cross-site\r\n", ""); got.status == 403 {
			t.Errorf("%s: %s", path, got.text)
		}
	}
}

// A page of another origin cannot send a key, so where one is asked for any host is allowed.
func TestKeys_AnyHost_Allowed(t *testing.T) {
	r := newRig(t, setup{})
	r.ask("GET", "/mailboxes/any@example.com", "mail.acme.example",
		"Authorization: Bearer "+appKey+"\r\nOrigin: https://acme.example\r\nSec-Fetch-Site: cross-site\r\n", "").is(t, 200, "")
}

// Every body is one JSON object of known fields, also by its header, which a form cannot say, and not
// too large.
func TestBody_EachRoute_OnlyJSON(t *testing.T) {
	r := newRig(t, setup{options: keyless, actions: twoActions, rules: ruleForEach})
	for _, route := range routesWithKeys {
		if route.body == "" {
			continue
		}
		for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
			header := http.Header{"Content-Type": {contentType}}
			r.request(route.method, route.path, header, route.body).is(t, 400, "bad-request")
		}
		for _, body := range []string{"{", "[]", `{"other":"y",` + route.body[1:], route.body[:len(route.body)-1] + "," + route.body[1:], route.body + "{}", "{\"email\":\"\xff\"}"} {
			r.do(route.method, route.path, "", body).is(t, 400, "bad-request")
		}
		r.do(route.method, route.path, "", `{"email":"`+strings.Repeat("x", 16<<10)+`"}`).is(t, 413, "body-too-large")
	}
}

// ask sends one request on a connection of its own, to a host by any name.
func (r *rig) ask(method, path, host, headers, body string) reply {
	r.t.Helper()
	if body != "" {
		headers += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	w := r.dial(method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "\r\n" + body)
	defer w.Close()
	return w.read(method, path)
}
