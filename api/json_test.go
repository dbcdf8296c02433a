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
		`{"ema\u0131l":"hostile@example.com"}`, `{"email ":"hostile@example.com"}`, `{"":"x",` + good + `}`, `{` + good + `,"MARK99":1}`,
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
	for field, hint := range map[string]string{
		`"Email":"x"`: "did you mean email?", `"clientIp":"x"`: "did you mean client_ip?", `"client-ip":"x"`: "did you mean client_ip?",
		`"client_ip":null`: "leave the field out instead of null (field client_ip,", `"client_ip":9`: "expected a string (field client_ip,",
	} {
		got := r.do("POST", "/send-code", appKey, "{"+field+"}")
		got.is(t, 400, "bad-request")
		if detail, _ := got.body["detail"].(string); !strings.Contains(detail, hint) {
			t.Errorf("%s: %q", field, detail)
		}
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
