package oauth_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer/oauth"
)

func TestParseGrant(t *testing.T) {
	const rest = "\nclient_id: a\nclient_secret: b\n"
	for text, want := range map[string]string{
		"token_url: https://login.example/x/token" + rest:                        "login.example",
		"token_url: 'https://login.example:8443/token?p=q'" + rest:               "login.example:8443",
		"token_url: http://127.0.0.1:80/token" + rest:                            "127.0.0.1:80",
		"token_url: http://localhost/token\nscope:\nrefresh_token: c" + rest:     "localhost",
		"token_url: http://[::1]:80/" + rest:                                     "[::1]:80",
		"token_url: https://login.example\nclient_id: 0123\nclient_secret: true": "login.example",

		"":                                       "lines of name: value",
		"- token_url":                            "lines of name: value",
		"hunter2":                                "lines of name: value",
		"client_id: {}":                          "oauth:1: client_id: it must be a plain value",
		"client_id: a\nclient_id: hunter2":       "oauth:2: client_id: it was already set",
		"client_id: a\nTenant: hunter2":          "oauth:2: there is no such line",
		"client_id: a\npassword: hunter2":        "oauth:2: password: there is no such line",
		"client_id: a\n\tclient_secret: hunter2": "not YAML",
		"client_id: a\nclient_secret: hunter2\n": "oauth: token_url is missing",
		"token_url: https://h.example\nclient_secret: hunter2\n":        "oauth: client_id is missing",
		"token_url: https://h.example\nclient_id: hunter2\n":            "oauth: client_secret is missing",
		"token_url: https://h.example\nclient_id: a\nclient_secret: ''": "oauth: client_secret is missing",
		"token_url: http://login.example/hunter2" + rest:                "oauth:1: token_url: it must be https://",
		"token_url: http://127.0.0.1.example/hunter2" + rest:            "it must be https://",
		"token_url: http://0.0.0.0/hunter2" + rest:                      "it must be https://",
		"token_url: https://hunter2@login.example/" + rest:              "it must be https://",
		"token_url: https://login.example/#hunter2" + rest:              "it must be https://",
		"token_url: https:///hunter2" + rest:                            "it must be https://",
		"token_url: https:hunter2" + rest:                               "it must be https://",
		"token_url: file:///hunter2" + rest:                             "it must be https://",
		"token_url: hunter2" + rest:                                     "it must be https://",
		"token_url: 'https://a b'" + rest:                               "it must be https://",
	} {
		grant, err := oauth.ParseGrant([]byte(text))
		if err == nil {
			if grant.Server() != want {
				t.Errorf("%q: accepted, for %s, want %q", text, grant.Server(), want)
			}
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestAGrantShowsNoSecret(t *testing.T) {
	grant, err := oauth.ParseGrant([]byte("token_url: https://login.example\nclient_id: a\nclient_secret: hunter2\nrefresh_token: hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{grant, &grant, struct{ g oauth.Grant }{grant}, struct{ g *oauth.Grant }{&grant}} {
			if got := fmt.Sprintf(format, value); strings.Contains(got, "hunter2") || strings.Contains(got, "68756e74657232") {
				t.Errorf("%s shows %s", format, got)
			}
		}
	}
}
