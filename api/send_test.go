package api_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/throttle/rules"
)

var sixDigits = regexp.MustCompile(`\b[0-9]{6}\b`)

// arrived is the next mail to an address.
func (r *rig) arrived(to string) sandbox.Message {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	mail := must.Get(r.Relay.Wait(ctx, to))(r.t)
	journal.private(sixDigits.FindAllString(mail.Text, -1)...)
	return mail
}

// A send, a refused one, and the next when the wait is over, byte for byte.
func TestSend_BeforeTheWaitIsOver_Refused(t *testing.T) {
	r := newRig(t, setup{})
	got := r.send("Alice@Example.com")
	got.is(t, 200, "")
	id, _ := got.body["id"].(string)
	messageID, _ := got.body["message_id"].(string)
	got.reads(t, `{"status":"sent","id":"`+id+`","message_id":"`+messageID+`","email":"Alice@example.com","expires_in_ms":600000,`+
		`"rule":"mailbox","limit":"minute","wait_ms":60000,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:00.000Z","limits":[`+
		`{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":60000},`+
		`{"name":"hour","limit":5,"window_ms":3600000,"remaining":4,"wait_ms":0},`+
		`{"name":"day","limit":10,"window_ms":86400000,"remaining":9,"wait_ms":0}],"degraded":false,"countdown":"`+got.token()+`"}`)
	got.carries(t, map[string]string{
		"Content-Type": "application/json", "Retry-After": "",
		"RateLimit-Policy": `"minute";q=1;w=60, "hour";q=5;w=3600, "day";q=10;w=86400`,
		"RateLimit":        `"minute";r=0;t=60, "hour";r=4;t=3600, "day";r=9;t=86400`,
	})
	mail := r.arrived("Alice@example.com")
	if mail.Header.Get("Message-Id") != messageID || !strings.Contains(messageID, id) {
		t.Errorf("the email's id is %q, the answer's %q, the reservation's %q", mail.Header.Get("Message-Id"), messageID, id)
	}
	if sixDigits.FindString(mail.Text) == "" {
		t.Error("the email has no code of six digits")
	}

	r.now.Add(59_999)
	got = r.send("alice+again@example.com")
	got.is(t, 429, "quota-exceeded")
	got.reads(t, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,`+
		`"detail":"The minute limit of this mailbox is reached. Try again in 1 s.","rule":"mailbox",`+
		`"limit":"minute","wait_ms":1,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:59.999Z","limits":[`+
		`{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":1},`+
		`{"name":"hour","limit":5,"window_ms":3600000,"remaining":4,"wait_ms":0},`+
		`{"name":"day","limit":10,"window_ms":86400000,"remaining":9,"wait_ms":0}],"degraded":false,"countdown":"`+got.token()+`","violated-policies":["minute"]}`)
	got.carries(t, map[string]string{
		"Content-Type": "application/problem+json", "Retry-After": "1",
		"RateLimit": `"minute";r=0;t=1, "hour";r=4;t=3541, "day";r=9;t=86341`,
	})
	r.now.Add(1)
	r.send("ALICE@example.com").is(t, 200, "")
	r.sent(2)
}

// carries fails the test unless the answer has these headers; "" stands for none. Partition
// keys are left out.
func (got reply) carries(t testing.TB, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if has := partition.ReplaceAllString(got.header.Get(name), ""); has != value {
			t.Errorf("header %s is %q, want %q", name, has, value)
		}
	}
}

var partition = regexp.MustCompile(`;pk=:[A-Za-z0-9+/]+=*:`)

// partitions are the partition keys of a header, one for each limit; "" stands for none.
func (got reply) partitions(name string) (all []string) {
	for item := range strings.SplitSeq(got.header.Get(name), ", ") {
		all = append(all, partition.FindString(item))
	}
	return all
}

// Every limit that an answer counts by mailbox or visitor has the key of that one, so that a client
// holds back no other because of it; an alias has its mailbox's. A limit of all has none.
func TestSend_PartitionKey_TellsMailboxesApart(t *testing.T) {
	r := newRig(t, setup{policy: "hour=5/1h", rules: func(r *rig, own *rules.Rule) []rules.Rule {
		return append(also("visitors", rules.ByClientIP, "hour=1/1h")(r, own), also("all", rules.ByAll, "hour=2/1h")(r, own)...)
	}})
	const first, second = `,"client_ip":"203.0.113.7"`, `,"client_ip":"203.0.113.8"`
	r.sendAs(appKey, "alice@example.com", first).is(t, 200, "")
	r.sendAs(appKey, "bob@example.com", second).is(t, 200, "")
	keys := func(email, visitor string) []string {
		t.Helper()
		got := r.sendAs(appKey, email, visitor)
		all := got.partitions("RateLimit")
		if len(all) != 3 || all[0] == "" || all[1] == "" || all[2] != "" || !slices.Equal(got.partitions("RateLimit-Policy"), all) {
			t.Fatalf("RateLimit of %s has the keys %q", email, all)
		}
		return all
	}
	alice, alias, bob := keys("alice@example.com", first), keys("alice+shop@example.com", second), keys("bob@example.com", second)
	if alias[0] != alice[0] || bob[0] == alice[0] || alias[1] == alice[1] || bob[1] != alias[1] {
		t.Errorf("the keys are %q, %q and %q", alice, alias, bob)
	}
}

func TestSend_EachField_HasItsEffect(t *testing.T) {
	r := newRig(t, setup{})
	tests := []struct {
		email, rest  string
		text, absent string
		expires      bool
	}{
		{"code@example.com", `,"code":"Zq7Kx9"`, "Zq7Kx9", "10 minutes", false},
		{"made@example.com", ``, "10 minutes", "", true},
		{"template@example.com", `,"template":"code"`, "10 minutes", "", true},
		{"locale@example.com", `,"locale":"zh-CN"`, "验证码", "", true},
		{"elsewhere@example.com", `,"locale":"xx"`, "10 minutes", "验证码", true},
		{"client4@example.com", `,"client_ip":"203.0.113.7"`, "", "203.0.113.7", true},
		{"client6@example.com", `,"client_ip":"2001:db8::7"`, "", "2001:db8::7", true},
		{"data@example.com", `,"data":{"product":"Acme","n":"2"}`, "", "", true},
		{"purpose@example.com", `,"purpose":"sign-up"`, "10 minutes", "sign-up", true},
		{"all@example.com", `,"code":"a1B2c3D4e5F6","template":"code","locale":"en","client_ip":"::1","data":{}`, "a1B2c3D4e5F6", "", false},
	}
	for _, tt := range tests {
		got := r.do("POST", "/send-code", appKey, `{"email":`+quote(tt.email)+tt.rest+`}`)
		got.is(t, 200, "")
		if _, expires := got.body["expires_in_ms"]; expires != tt.expires {
			t.Errorf("%s: expires_in_ms is there: %v, want %v", tt.email, expires, tt.expires)
		}
		text := r.arrived(tt.email).Text
		if !strings.Contains(text, tt.text) || tt.absent != "" && strings.Contains(text, tt.absent) {
			t.Errorf("%s: the email says %q, and should say %q and not %q", tt.email, text, tt.text, tt.absent)
		}
	}
}

// All invalid fields are named at once, and nothing is charged.
func TestSend_Invalid_NamesEachField(t *testing.T) {
	r := newRig(t, setup{})
	tooMany := `{"k":"v"`
	for i := range 16 {
		tooMany += `,"k` + strings.Repeat("x", i+1) + `":"v"`
	}
	tooMany += "}"
	tests := []struct{ body, want string }{
		{`{}`, "email:missing"},
		{`{"email":""}`, "email:empty"},
		{`{"email":"no-at"}`, "email:no-at"},
		{`{"email":"a@example.com","code":""}`, "code:invalid"},
		{`{"email":"a@example.com","code":"123"}`, "code:invalid"},
		{`{"email":"a@example.com","code":"12 34"}`, "code:invalid"},
		{`{"email":"a@example.com","code":"１２３４"}`, "code:invalid"},
		{`{"email":"a@example.com","template":"nope"}`, "template:unknown"},
		{`{"email":"a@example.com","template":"../code"}`, "template:unknown"},
		{`{"email":"a@example.com","client_ip":""}`, "client_ip:invalid"},
		{`{"email":"a@example.com","client_ip":"localhost"}`, "client_ip:invalid"},
		{`{"email":"a@example.com","client_ip":"fe80::1%eth0"}`, "client_ip:invalid"},
		{`{"email":"a@example.com","client_ip":"10.0.0.0/8"}`, "client_ip:invalid"},
		{`{"email":"a@example.com","purpose":""}`, "purpose:invalid"},
		{`{"email":"a@example.com","purpose":"Sign-up"}`, "purpose:invalid"},
		{`{"email":"a@example.com","purpose":"2fa"}`, "purpose:invalid"},
		{`{"email":"a@example.com","purpose":"` + strings.Repeat("x", 33) + `"}`, "purpose:invalid"},
		{`{"email":"a@example.com","code":"482913","purpose":"sign-up"}`, "purpose:with-code"},
		{`{"email":"a@example.com","data":{"a b":"c"}}`, "data:invalid"},
		{`{"email":"a@example.com","data":{"a":"b\nc"}}`, "data:invalid"},
		{`{"email":"a@example.com","data":{"a":"` + strings.Repeat("x", 2049) + `"}}`, "data:invalid"},
		{`{"email":"a@example.com","data":` + tooMany + `}`, "data:invalid"},
		{`{"email":"a b@example.com","code":"!","template":"nope","client_ip":"x","data":{"1":"x"},"purpose":"?"}`,
			"email:space purpose:with-code client_ip:invalid code:invalid template:unknown data:invalid"},
	}
	for _, tt := range tests {
		r.do("POST", "/send-code", appKey, tt.body).isInvalid(t, tt.want)
	}
	r.send("no-at").contains(t, `"detail":"The address has no @."`)
	r.sent(0)
	r.charged("a@example.com", 0)
}

// titled is a template whose subject callers make.
var titled = fstest.MapFS{
	"own/en/subject.txt": {Data: []byte("{{.Data.title}} {{.ExpiresIn}}")}, "own/en/text.txt": {Data: []byte("{{.Code}}")},
	"own/en/body.html": {Data: []byte("<p>{{.Code}}</p>")},
}

// Data that makes no email in this template is an invalid field: nothing is charged.
func TestSend_DataUnfitForTemplate_Invalid(t *testing.T) {
	r := newRig(t, setup{policy: "minute=2/60s"})
	r.reload(func(live *delivery.Live) { live.Composer = composerWith(t, titled) })
	body := func(title int, more string) string {
		return `{"email":"a@example.com","template":"own","data":{"title":"` + strings.Repeat("x", title) + `"}` + more + `}`
	}
	const most = 200 - len(" 10 minutes")
	for _, will := range []string{body(256, ""), body(most+1, ""), body(201, `,"code":"123456"`)} {
		for _, got := range []reply{r.do("POST", "/send-code", appKey, will), r.onceAs(appKey, "k", will)} {
			got.is(t, 422, "invalid")
			got.contains(t, `"errors":[{"field":"data","reason":"invalid","detail":"data makes a subject that is too long."}]`)
			got.logged(t, fields{"level": "INFO"})
		}
	}
	r.sent(0)
	r.charged("a@example.com", 0)
	r.onceAs(appKey, "k", body(most, "")).is(t, 200, "")
	r.do("POST", "/send-code", appKey, body(200, `,"code":"123456"`)).is(t, 200, "")
}

// No field has room for a second line.
func TestSend_LineEndInAnyField_Invalid(t *testing.T) {
	r := newRig(t, setup{})
	for field, value := range map[string]string{
		"email": `"a@example.com\r\nBcc: b@example.com"`, "code": `"1234\r\n"`, "purpose": `"sign-up\r\n"`, "template": `"code\r\n"`,
		"locale": `"en\r\nBcc: b@example.com"`, "client_ip": `"203.0.113.7\r\n"`, "data": `{"device":"x\r\ny"}`,
	} {
		body := `{"email":"a@example.com",` + quote(field) + ":" + value + "}"
		if field == "email" {
			body = `{"email":` + value + "}"
		}
		got := r.do("POST", "/send-code", appKey, body)
		got.is(t, 422, "invalid")
		got.contains(t, `"errors":[{"field":"`+field+`"`)
	}
	r.sent(0)
}
