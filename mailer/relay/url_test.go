package relay_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

func TestParseURL_EachForm_Read(t *testing.T) {
	oauth := "oauth=" + url.QueryEscape(mailtest.StartTokens(t, numbered).File(t))
	for text, want := range map[string]string{
		"smtps://user:pass@mail.example.com":                           "smtps://mail.example.com:465",
		"smtps://mail.example.com:2465/":                               "smtps://mail.example.com:2465",
		"smtp://user:pass@mail.example.com":                            "smtp://mail.example.com:587",
		"smtp://u%40x:p%3A%2F%23%3F@mail.example.com:25":               "smtp://mail.example.com:25",
		"smtp://mail.example.com?tls=none":                             "smtp://mail.example.com:25?tls=none",
		"smtp://[::1]:2525?tls=none":                                   "smtp://[::1]:2525?tls=none",
		"SMTP://mail.example.com":                                      "smtp://mail.example.com:587",
		"smtp://mx-09_az.example.com":                                  "smtp://mx-09_az.example.com:587",
		"smtps://10.0.0.1?servername=mail.example.com":                 "smtps://10.0.0.1:465",
		"smtp://a%40acme.example@mail.example.com?" + oauth:            "smtp://mail.example.com:587?oauth=***",
		"smtps://user:@mail.example.com?servername=x.example&" + oauth: "smtps://mail.example.com:465?oauth=***",
	} {
		got, err := relay.ParseURL(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestParseURL_Wrong_NothingRepeated(t *testing.T) {
	dir := t.TempDir()
	empty := servertest.Write(t, filepath.Join(dir, "empty.pem"), "no certificate")
	large := servertest.Write(t, filepath.Join(dir, "large.pem"), strings.Repeat("x", 3<<20))
	oauth := "oauth=" + url.QueryEscape(mailtest.StartTokens(t, numbered).File(t))
	for text, says := range map[string]string{
		"":                    "host",
		"mail.example.com:25": "smtps://",
		"http://hunter2:hunter2@mail.example.com":                   "scheme",
		"smtp:mail.example.com":                                     "host",
		"smtp://":                                                   "host",
		"smtp://:587":                                               "host",
		"smtp://mail.example.com:":                                  "port",
		"smtp://mail.example.com:0":                                 "port",
		"smtp://mail.example.com:65536":                             "port",
		"127.0.0.1:25":                                              "write it as",
		"mail.example.com":                                          "write it as",
		"user:hunter2@mail.example.com":                             "write it as",
		"smtp://mail.example.com:smtp":                              "URL",
		"smtp://hunter2@mail.example.com":                           "together",
		"smtp://:hunter2@mail.example.com":                          "together",
		"smtp://hunter2:@mail.example.com":                          "together",
		"smtp://a:hunter2@mail.example.com?tls=none":                "clear",
		"smtp://a:hunter%002@mail.example.com":                      "NUL",
		"smtp://a:hunter2%zz@mail.example.com":                      "percent-encoded",
		"smtp://a:hunter2/x@mail.example.com":                       "percent-encoded",
		"smtp://a:b@mail.example.com/hunter2":                       "percent-encoded",
		"smtp://a:b@mail.example.com#hunter2":                       "percent-encoded",
		"smtp://mail.example.com?tls=maybe":                         "scheme",
		"smtp://mail.example.com?tls=":                              "tls",
		"smtps://mail.example.com?tls=none":                         "scheme",
		"smtp://mail.example.com?hunter2=x":                         "query",
		"smtp://mail.example.com?TLS=none":                          "query",
		"smtp://mail.example.com?a=1;b=2":                           "query",
		"smtp://m.example?tls=none&tls=none":                        "exactly one",
		"smtp://m.example?tls=none&ca=x":                            "need TLS",
		"smtp://m.example?tls=none&servername=x":                    "need TLS",
		"smtp://m.example?ca=" + dir:                                "does not exist",
		"smtp://m.example?ca=" + dir + "/hunter2":                   "does not exist",
		"smtp://m.example?ca=" + empty:                              "no PEM",
		"smtp://m.example?ca=" + large:                              "larger than",
		"smtp://mäil.example":                                       "ASCII",
		"smtp://0:0:1":                                              "ASCII",
		"smtp://[fe80::1%25eth0]":                                   "ASCII",
		"smtp://mail example":                                       "URL",
		"smtp://user:hunter2@mail.example.com?" + oauth:             "oauth needs a user, and no password",
		"smtp://mail.example.com?" + oauth:                          "oauth needs a user, and no password",
		"smtp://:hunter2@mail.example.com?" + oauth:                 "oauth needs a user, and no password",
		"smtp://hunter2@mail.example.com?tls=none&" + oauth:         "in clear text",
		"smtp://hunter2%00@mail.example.com?" + oauth:               "NUL",
		"smtp://hunter2%01@mail.example.com?" + oauth:               "Ctrl-A",
		"smtp://hunter2@mail.example.com?oauth=":                    "exactly one",
		"smtp://hunter2@m.example?" + oauth + "&" + oauth:           "exactly one",
		"smtp://hunter2@mail.example.com?oauth=" + dir + "/hunter2": "oauth: the file does not exist",
		"smtp://hunter2@mail.example.com?oauth=/dev/zero":           "oauth: the file does not exist",
		"smtp://hunter2@mail.example.com?oauth=" + empty:            "oauth",
	} {
		_, err := relay.ParseURL(text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want it to say %q", text, err, says)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), dir) {
			t.Errorf("%q: the error repeats it: %v", text, err)
		}
	}
}

func TestURL_Printed_NoSecret(t *testing.T) {
	u := must.Get(relay.ParseURL("smtps://user:hunter2@mail.example.com"))(t)
	for _, format := range []string{"%v", "%+v", "%#v", "%d", "%s", "%q", "%x", "%X"} {
		for _, value := range []any{
			u, &u, []relay.URL{u}, map[string]*relay.URL{"relay": &u}, struct{ U relay.URL }{u},
			// Out of fmt's reach: it calls no method of what a field hides.
			struct{ u relay.URL }{u}, struct{ u []relay.URL }{[]relay.URL{u}},
		} {
			got := strings.ToLower(fmt.Sprintf(format, value))
			for _, secret := range []string{"hunter2", "user", "68756e74657232", "75736572"} {
				if strings.Contains(got, secret) {
					t.Errorf("%s shows %s", format, got)
				}
			}
		}
		if got := fmt.Sprintf(format, u); got != "smtps://mail.example.com:465" {
			t.Errorf("%s shows %s", format, got)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("smtps://user:pass@mail.example.com:465")
	f.Add("smtp://mail.example.com?tls=none")
	f.Add("smtp://a:b@[::1]:25?servername=x")
	f.Add("smtp://a%00:b@host?ca=/nowhere")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := relay.ParseURL(text)
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("not one plain line: %q", err)
			}
			return
		}
		// What is accepted prints as a URL that means the same relay.
		again, err := relay.ParseURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("%q prints as %q, which gives %v, %v", text, u, again, err)
		}
		if strings.ContainsAny(u.String(), " \r\n\x00@") {
			t.Errorf("%q prints as %q", text, u)
		}
	})
}
