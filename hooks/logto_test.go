package hooks_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/hooks"
)

const authorization = "Bearer of-the-connector-1"

func TestLogto_Genuine_WholeAuthorization(t *testing.T) {
	hook := hooks.NewLogto(" "+authorization+"\n", "") // blanks at an end do not arrive in a header
	for text, want := range map[string]bool{authorization: true, "": false, "of-the-connector-1": false, authorization + " ": false, strings.ToLower(authorization): false} {
		if got := genuine(t, hook, headers("Authorization", text), ""); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestLogto_EachType_TemplateLocaleAndCode(t *testing.T) {
	hook := hooks.NewLogto(authorization, "https://App.example/join")
	for kind, template := range map[string]string{
		"SignIn": "sign-in", "Register": "register", "ForgotPassword": "forgot-password", "Generic": "generic", "Test": "generic",
		"UserPermissionValidation": "user-permission-validation", "BindNewIdentifier": "bind-new-identifier", "MfaVerification": "mfa-verification", "BindMfa": "bind-mfa",
	} {
		emails, by, err := hook.Emails(&hooks.Call{Body: []byte(`{"to":"foo@logto.example","type":"` + kind + `","payload":{"code":"123456","locale":"zh-CN","link":"https://evil.example"},"ip":"203.0.113.7","more":{}}`), Began: signedAt})
		if got := mails(emails); err != nil || !by.IsZero() || !reflect.DeepEqual(got, []mail{{"foo@logto.example", "logto-" + template, "123456", ""}}) {
			t.Errorf("%s: %v, %v, %v", kind, err, by, got)
			continue
		}
		if one := emails[0]; one.Mail.Locale != "zh-CN" || one.Traits.Client.String() != "203.0.113.7" || one.Linked {
			t.Errorf("%s: %+v", kind, one)
		}
	}
	emails, _, err := hook.Emails(&hooks.Call{Body: []byte(`{"to":"foo@logto.example","type":"OrganizationInvitation","payload":{"link":"https://app.example/join?id=1"}}`), Began: signedAt})
	if got := mails(emails); err != nil || !emails[0].Linked || !reflect.DeepEqual(got, []mail{{"foo@logto.example", "logto-organization-invitation", "", "https://app.example/join?id=1"}}) {
		t.Errorf("an invitation: %v, %v", err, got)
	}
}

func TestLogto_BadCall_SaysWhat(t *testing.T) {
	invite := func(link string) string {
		return `{"to":"foo@logto.example","type":"OrganizationInvitation","payload":{"link":"` + link + `"}}`
	}
	for body, want := range map[string]string{
		`{"to":"foo@logto.example","type":"Newsletter","payload":{"code":"123456"}}`: `type: no email of the kind "Newsletter" is known`,
		`{"to":"foo@logto.example","type":"SignIn","payload":{}}`:                    "payload.code is missing",
		`{"to":"foo","type":"SignIn","payload":{"code":"123456"}}`:                   "to: the address",
		`[]`:                                "the call is not the JSON that this hook takes: see the start",
		invite("https://evil.example/join"): "payload.link does not lead to",
		invite("https://app.example.evil.example/join"):        "payload.link does not lead to",
		invite("https://app.example@evil.example/join"):        "payload.link does not lead to",
		invite("https://user@app.example/join"):                "payload.link does not lead to",
		invite("http://app.example/join"):                      "payload.link does not lead to",
		invite("https://app.example:444/join"):                 "payload.link does not lead to",
		invite(`https://app.example\\@evil.example/`):          "payload.link does not lead to",
		invite("//app.example/join"):                           "payload.link does not lead to",
		invite("javascript:alert(1)"):                          "payload.link does not lead to",
		invite("https://app.example/ https://evil.example/"):   "payload.link has a character",
		invite("https://app.example/?a https://evil.example/"): "payload.link has a character",
		invite("https://app.example/<https://evil.example>"):   "payload.link has a character",
		invite("https://app.example/#、https://evil.example/"):  "payload.link has a character",
		invite(""): "payload.link does not lead to",
	} {
		_, _, err := hooks.NewLogto(authorization, "https://app.example").Emails(&hooks.Call{Body: []byte(body), Began: signedAt})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "foo") {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	if _, _, err := hooks.NewLogto(authorization, "").Emails(&hooks.Call{Body: []byte(invite("https://app.example/join")), Began: signedAt}); err == nil {
		t.Error("an invitation without a configured site is accepted")
	}
}
