package api_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate/api"
)

// titled is a template whose subject callers make.
var titled = fstest.MapFS{
	"own/en/subject.txt": {Data: []byte("{{.Data.title}} {{.ExpiresIn}}")}, "own/en/text.txt": {Data: []byte("{{.Code}}")},
	"own/en/body.html": {Data: []byte("<p>{{.Code}}</p>")},
}

// Data that makes no email in this template is an invalid field: nothing is charged.
func TestSend_DataUnfitForTemplate_Invalid(t *testing.T) {
	r := newRig(t, setup{policy: "minute=2/60s"})
	r.reload(func(live *api.Live) { live.Composer = composerWith(t, titled) })
	body := func(title int, more string) string {
		return `{"email":"a@example.com","template":"own","data":{"title":"` + strings.Repeat("x", title) + `"}` + more + `}`
	}
	const most = 200 - len(" 10 minutes")
	for _, will := range []string{body(256, ""), body(most+1, ""), body(201, `,"code":"123456"`)} {
		for _, got := range []reply{r.do("POST", "/send-code", appKey, will), r.onceAs(appKey, "k", will)} {
			got.is(t, 422, "invalid")
			if !strings.Contains(got.text, `"errors":[{"field":"data","reason":"invalid","detail":"data makes a subject that is too long."}]`) {
				t.Errorf("answered %s", got.text)
			}
			got.logged(t, fields{"level": "INFO"})
		}
	}
	if r.used("a@example.com") != 0 || len(r.box.List()) != 0 {
		t.Error("it was charged, or sent")
	}
	r.onceAs(appKey, "k", body(most, "")).is(t, 200, "")
	r.do("POST", "/send-code", appKey, body(200, `,"code":"123456"`)).is(t, 200, "")
}
