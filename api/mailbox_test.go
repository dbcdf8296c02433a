package api_test

import (
	"bufio"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
)

// A lookup charges nothing, and finds the mailbox that a send charges.
func TestLookup_Spellings_OneMailbox(t *testing.T) {
	r := newRig(t, setup{})
	got := r.do("GET", "/mailboxes/Bob%40example.com", appKey, "")
	got.is(t, 200, "")
	got.reads(t, `{"email":"Bob@example.com","rule":null,"limit":null,"wait_ms":0,"retry_at":"2026-11-20T12:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z","limits":[`+
		`{"name":"minute","limit":1,"window_ms":60000,"remaining":1,"wait_ms":0},`+
		`{"name":"hour","limit":5,"window_ms":3600000,"remaining":5,"wait_ms":0},`+
		`{"name":"day","limit":10,"window_ms":86400000,"remaining":10,"wait_ms":0}],"degraded":false,"countdown":"`+got.token()+`"}`)
	r.send("bob@example.com").is(t, 200, "")
	r.now.Add(1234)
	for _, spelling := range []string{"bob@example.com", "BOB%40EXAMPLE.COM", "bob+tag@example.com", "bob%2btag@example.com", "b%6Fb@example.com"} {
		got := r.do("GET", "/mailboxes/"+spelling, appKey, "")
		got.is(t, 200, "")
		got.says(t, fields{"limit": "minute", "wait_ms": 58766.0})
		got.carries(t, map[string]string{"RateLimit": `"minute";r=0;t=59, "hour";r=4;t=3599, "day";r=9;t=86399`})
	}
}

// The path is decoded once, and a plus is a plus.
func TestLookup_Paths_DecodedOnce(t *testing.T) {
	r := newRig(t, setup{})
	tests := []struct {
		path   string
		status int
		email  string
	}{
		{"a+b@example.com", 200, "a+b@example.com"},
		{"a%2Bb@example.com", 200, "a+b@example.com"},
		{"a%2Fb@example.com", 200, "a/b@example.com"},
		{"a%25b@example.com", 422, ""}, // the percent routes
		{"a%2540example.com", 422, ""}, // decoded once only
		{"a%20b@example.com", 422, ""},
		{"a%00b@example.com", 422, ""},
		{"a%0d%0ab@example.com", 422, ""},
		{"%ff@example.com", 422, ""},
		{"b%C3%BCcher@example.com", 422, ""},
		{"x@b%C3%BCcher.example", 200, "x@xn--bcher-kva.example"},
		{"no-at", 422, ""},
		{strings.Repeat("x", 255) + "@example.com", 422, ""},
	}
	for _, tt := range tests {
		got := r.do("GET", "/mailboxes/"+tt.path, appKey, "")
		if got.status != tt.status || tt.email != "" && got.body["email"] != tt.email {
			t.Errorf("%s: answered %d %s", tt.path, got.status, got.text)
		}
	}
	for _, path := range []string{"/mailboxes/a%4", "/mailboxes/a%", "/mailboxes/a%zz@example.com", "/admin/mailboxes/a%g0b@example.com"} {
		r.ask("GET", path, "x", "Authorization: Bearer "+(route{path: path}).key()+"\r\n", "").is(t, 400, "bad-request")
	}
}

// An operator sees the sends and resets them, which is logged.
func TestMailbox_SentTo_ShownAndReset(t *testing.T) {
	r := newRig(t, setup{})
	path := "/admin/mailboxes/" + url.PathEscape("carol+x@example.com")
	r.do("GET", path, opsKey, "").contains(t, `"sends":[],"guesses":[{"name":"ten-minutes",`)
	first := r.send("carol@example.com").body["id"].(string)
	r.now.Add(60_000)
	second := r.send("Carol@example.com").body["id"].(string)
	got := r.do("GET", path, opsKey, "")
	got.is(t, 200, "")
	got.contains(t, `"sends":[{"id":"`+first+`","at":"2026-11-20T12:00:00.000Z"},{"id":"`+second+`","at":"2026-11-20T12:01:00.000Z"}],"guesses":[`)

	got = r.do("POST", path+"/reset", opsKey, `{"reason":"ticket 4711"}`)
	got.is(t, 200, "")
	name, _ := got.body["mailbox"].(string)
	got.logged(t, fields{"msg": "mailbox reset", "key": "alex", "from": "127.0.0.1", "reason": "ticket 4711", "cleared": 2.0, "mailbox": name}, fields{})
	got.reads(t, `{"email":"carol+x@example.com","cleared":2,"guesses_cleared":0,"mailbox":"`+name+`","cases":[]}`)
	r.send("carol@example.com").is(t, 200, "")
	r.do("POST", "/admin/mailboxes/no-at/reset", opsKey, "").is(t, 422, "invalid")
	r.do("GET", "/admin/mailboxes/no-at", opsKey, "").is(t, 422, "invalid")
}

// Every invalid address is refused with its reason and not charged.
func TestSend_HostileAddresses_Refused(t *testing.T) {
	r := newRig(t, setup{})
	file := must.Get(os.Open("../mailer/address/testdata/addresses.tsv"))(t)
	defer file.Close()
	refused := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		columns := strings.Split(lines.Text(), "\t")
		if len(columns) < 3 {
			continue
		}
		reason, isRefused := strings.CutPrefix(columns[1], "refused:")
		input := must.Get(strconv.Unquote(columns[0]))(t)
		if !isRefused || strings.Trim(input, " ") != input || strings.Contains(input, "\x00") || strings.ToValidUTF8(input, "") != input {
			continue // what is no text is refused before it is an address, and spaces around one are ignored
		}
		refused++
		r.send(input).isInvalid(t, "email:"+reason)
	}
	if refused < 50 || len(r.Relay.List()) != 0 {
		t.Errorf("%d addresses were refused, and %d emails sent", refused, len(r.Relay.List()))
	}
}

// The address of a peek is in the body, and its answer is that of the look by path.
func TestPeek_Mailbox_AsByPath(t *testing.T) {
	r := newRig(t, setup{})
	r.send("peeked@example.com").is(t, 200, "")
	got, same := r.do("POST", "/mailboxes/peek", appKey, `{"email":"Peeked+x@example.com"}`), r.do("GET", "/mailboxes/Peeked+x@example.com", appKey, "")
	got.is(t, 200, "")
	got.says(t, fields{"email": "Peeked+x@example.com", "limit": "minute", "wait_ms": 60000.0})
	got.reads(t, strings.Replace(same.text, same.token(), got.token(), 1))
	got.logged(t, fields{"route": "mailbox-peek", "mailbox": something})
	r.do("POST", "/mailboxes/peek", appKey, `{}`).isInvalid(t, "email:missing")
	r.do("POST", "/mailboxes/peek", appKey, `{"email":"no-at"}`).isInvalid(t, "email:no-at")
	r.do("GET", "/mailboxes/peek", appKey, "").is(t, 422, "invalid")
}

// Spaces around an address, as copying adds them, are ignored on each route.
func TestAddress_SpacesAround_Ignored(t *testing.T) {
	r := newRig(t, setup{})
	r.send("  spaced@example.com ").says(t, fields{"email": "spaced@example.com", "limit": "minute"})
	r.charged("spaced@example.com", 1)
	r.do("POST", "/mailboxes/peek", appKey, `{"email":" spaced@example.com "}`).says(t, fields{"limit": "minute"})
	r.do("GET", "/admin/mailboxes/%20spaced@example.com%20", opsKey, "").says(t, fields{"limit": "minute"})
	code := sixDigits.FindString(r.arrived("spaced@example.com").Text)
	r.do("POST", "/verify-code", appKey, `{"email":" spaced@example.com","code":"`+code+`"}`).is(t, 200, "")
	for _, other := range []string{"\u00a0spaced@example.com", "spaced@example.com\n", "spaced@example.com\t", " "} {
		r.send(other).is(t, 422, "invalid")
	}
}
