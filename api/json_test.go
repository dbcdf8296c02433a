package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// Bodies that another JSON reader might accept. Each is refused with the place of the mistake, without a
// value of it, and not charged.
func TestSend_HostileJSON_Refused(t *testing.T) {
	const good = `"email":"hostile@example.com"`
	bodies := []string{
		"", " ", "null", "true", "1", `"hostile@example.com"`, "[]", `[{` + good + `}]`, "{", "}", "{}}", "{,}", "{" + good,
		"{" + good + ",}", "{" + good + "}{}", "{" + good + "} x", "{" + good + "}\x00", "{" + good + "}null",
		`{"email"}`, `{"email":}`, `{"email" "hostile@example.com"}`, `{"email"="hostile@example.com"}`,
		`{email:"hostile@example.com"}`, `{'email':'hostile@example.com'}`, `{"email":'hostile@example.com'}`,
		`{` + good + ` ` + good + `}`, `{` + good + `;"code":"MARK99"}`,
		// given twice, in another case, under another spelling
		`{` + good + `,` + good + `}`, `{` + good + `,"email":"other@example.com"}`, `{` + good + `,"\u0065mail":"other@example.com"}`,
		`{` + good + `,"code":"MARK99","code":"MARK98"}`, `{` + good + `,"data":{"a":"1","a":"2"}}`, `{` + good + `,"data":{},"data":{}}`,
		`{"Email":"hostile@example.com"}`, `{"EMAIL":"hostile@example.com"}`, `{` + good + `,"Email":"other@example.com"}`,
		`{"ema\u0131l":"hostile@example.com"}`, `{"email ":"hostile@example.com"}`, `{"":"x",` + good + `}`, `{` + good + `,"MARK99!":1}`, `{` + good + `,"data":{"MARK99!":1}}`,
		`{` + good + `,"__proto__":{}}`, `{` + good + `,"expires_in_ms":1}`, `{` + good + `,"id":"x"}`,
		// another type
		`{"email":null}`, `{"email":1}`, `{"email":true}`, `{"email":["hostile@example.com"]}`, `{"email":{"a":"hostile@example.com"}}`,
		`{` + good + `,"code":482913}`, `{` + good + `,"code":NaN}`, `{` + good + `,"code":-Infinity}`, `{` + good + `,"code":1e999999}`,
		`{` + good + `,"code":99999999999999999999999999}`, `{` + good + `,"code":null}`, `{` + good + `,"data":null}`, `{` + good + `,"data":[]}`,
		`{` + good + `,"data":"MARK99"}`, `{` + good + `,"data":{"a":1}}`, `{` + good + `,"data":{"a":null}}`, `{` + good + `,"data":{"a":{"b":"c"}}}`,
		`{` + good + `,"data":` + strings.Repeat(`{"a":`, 2000) + `1` + strings.Repeat(`}`, 2000) + `}`,
		strings.Repeat("[", 16000), strings.Repeat(`{"email":`, 1500),
		// texts that are none
		"{\"email\":\"hostile@example.com\xff\"}", "{\"email\":\"\xc0\x80\"}", "{\"email\":\"\xed\xa0\x80\"}", "{\"email\":\"\xf4\x90\x80\x80\"}",
		"{\"ema\xffil\":\"x\"}", "\xff\xfe{\x00", "\xef\xbb\xbf{" + good + "}",
		`{"email":"\ud800"}`, `{"email":"\udc00"}`, `{"email":"\ud800\ud800"}`, `{"email":"\ud800x"}`, `{"email":"\ud83d\u0041"}`, `{"email":"\ud83d`,
		`{"email":"a\u0000b@example.com"}`, "{\"email\":\"a\x00b@example.com\"}", "{\"email\":\"a\nb@example.com\"}", "{\"email\":\"a\tb\"}",
		`{"email":"\x41"}`, `{"email":"\u004"}`, `{"email":"\u00zz"}`, `{"email":"\U00000041"}`, `{"email":"\`, `{"email":"\"`, `{"email":"hostile@example.com`,
		// marks between
		`{/**/` + good + `}`, `{` + good + `}//x`, `{` + good + "\v}", "{" + good + "\u00a0}", "\u2028{" + good + "}",
	}
	r := newRig(t, setup{})
	for _, body := range bodies {
		got := r.request("POST", "/send-code", http.Header{
			"Authorization": {"Bearer " + appKey}, "Content-Type": {"application/json"}}, body)
		got.is(t, 400, "bad-request")
		detail, _ := got.body["detail"].(string)
		if !strings.Contains(detail, "byte ") && body != "" {
			t.Errorf("%.60q: %q tells no place", body, detail)
		}
		for _, value := range []string{"hostile@", "other@", "MARK99", "482913"} {
			if strings.Contains(got.text, value) {
				t.Errorf("%.60q: %q repeats a value", body, detail)
			}
		}
	}
	r.sent(0)
	r.charged("hostile@example.com", 0)
}

// Common mistakes are answered with a correction.
func TestSend_JSONMistake_Hints(t *testing.T) {
	r := newRig(t, setup{})
	for field, want := range map[string]string{
		`"Email":"x"`:         "Invalid body: unknown field (field Email, byte 1). Did you mean email?",
		`"emial":"x"`:         "Invalid body: unknown field (field emial, byte 1). Did you mean email?",
		`"clientIp":"x"`:      "Invalid body: unknown field (field clientIp, byte 1). Did you mean client_ip?",
		`"client-ip":"x"`:     "Invalid body: unknown field (field client-ip, byte 1). Did you mean client_ip?",
		`"to":"x"`:            "Invalid body: unknown field (field to, byte 1).",
		`"client_ip":null`:    "Invalid body: expected a string; leave the field out instead of null (field client_ip, byte 13).",
		`"client_ip":9`:       "Invalid body: expected a string (field client_ip, byte 13).",
		`"data":{"device":9}`: "Invalid body: expected a string (field data.device, byte 18).",
		`"data":{"a":"b"},,`:  "Invalid JSON: the body is not one JSON object in UTF-8 (byte 18).",
	} {
		got := r.do("POST", "/send-code", appKey, "{"+field+"}")
		got.is(t, 400, "bad-request")
		got.says(t, fields{"detail": want})
	}
}

// A name that is unknown is answered with those that there are, and a wrong method with the right one.
func TestUnknown_EachName_ListsTheKnown(t *testing.T) {
	r := newRig(t, setup{actions: twoActions, rules: ruleForEach})
	for _, tt := range [][4]string{
		{"POST", "/actions/answer/take", `{"subject":"x"}`, "No action has this name. Known: pace, reply."},
		{"POST", "/admin/rules/visitors/peek", `{"subject":"x"}`, "No rule has this name. Known: all-rule, api-key-rule, client-ip-rule, domain-rule, mailbox, mailbox-rule, purpose-rule, template-rule. A denial or a built-in limit cannot be looked up: GET /admin/mailboxes/{email} (mailgate show EMAIL) says what denies a mailbox, and the guesses left."},
		{"POST", "/send-code", `{"email":"a@example.com","template":"kode"}`, "template is unknown; known are code."},
		{"POST", "/admin/rules/template-rule/peek", `{"subject":"kode"}`, "subject must be the name of a template: code."},
		{"POST", "/admin/rules/api-key-rule/peek", `{"subject":"x"}`, "subject must be the name of an API key: blog, shop."},
		{"GET", "/send-code", "", "Use POST for this path."},
		{"POST", "/livez", "", "Use GET or HEAD for this path."},
	} {
		r.do(tt[0], tt[1], (route{path: tt[1]}).key(), tt[2]).contains(t, `"detail":"`+tt[3]+`"`)
	}
}

func TestSend_OddJSON_Accepted(t *testing.T) {
	r := newRig(t, setup{})
	for _, body := range []string{
		"\r\n\t {\"email\" :\t\"odd1@example.com\"\n}  \r\n",
		`{"\u0065mail":"odd2\u0040example.com"}`,
		`{"email":"odd3@example.com","data":{"smile":"\ud83d\ude00","\u0061":"b"}}`,
		`{"data":{},"email":"odd4@example.com"}`,
		"{\"email\":\"odd5@ex\u00e4mple.com\"}",
		`{"email":"a\/b@example.com"}`,
		`{"email":"odd6\u004A\u005a@example.com"}`,
	} {
		if got := r.do("POST", "/send-code", appKey, body); got.status != 200 {
			t.Errorf("%s: %d %s", body, got.status, got.text)
		}
	}
}

func TestSend_ContentTypes_OnlyJSON(t *testing.T) {
	r := newRig(t, setup{policy: "hour=9/1h"})
	for status, types := range map[int][]string{
		200: {"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", `Application/JSON ; charset="utf-8"`},
		400: {
			"", "text/plain", "text/json", "application/jsonp", "application/problem+json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
			"application/json; charset=utf-16", "application/json; charset=latin1", "application/json, text/plain",
		},
	} {
		for _, contentType := range types {
			header := http.Header{"Authorization": {"Bearer " + appKey}, "Content-Type": {contentType}}
			if got := r.request("POST", "/send-code", header, `{"email":"types@example.com"}`); got.status != status {
				t.Errorf("%q: answered %d %s", contentType, got.status, got.text)
			}
		}
	}
}
