package message_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/message"
)

// hooked is a composer with the templates of these hooks.
func hooked(t *testing.T, own fstest.MapFS, hooks ...string) *message.Composer {
	t.Helper()
	var files fstest.MapFS
	if own != nil {
		files = own
	}
	return must.Get(message.NewComposer(must.Get(message.ParseSender("Acme <no-reply@acme.example>"))(t), must.Get(message.LoadTemplates(files, "en", hooks...))(t)))(t)
}

// Each kind shows what it has, in both languages, and nothing of the layout.
func TestKinds_EachLocale_CodeAndLink(t *testing.T) {
	composer := hooked(t, nil, "supabase", "logto")
	names := composer.Templates()
	if len(names) != 16 || names[0] != "code" {
		t.Fatal(names)
	}
	const link = "https://site.example/verify?a=1&b=2"
	for _, name := range names[1:] {
		for _, locale := range []string{"en", "zh-CN"} {
			request := sampleRequest(t)
			request.Template, request.Locale, request.Code, request.Data = name, locale, "305805", map[string]string{"link": link}
			invitation := name == "logto-organization-invitation"
			if invitation {
				request.Code = ""
			}
			got := read(t, must.Get(composer.Compose(request))(t))
			hasLink := invitation || strings.HasPrefix(name, "supabase-") && name != "supabase-reauthentication"
			for part, text := range map[string]string{"text": got.text, "html": got.html} {
				if strings.Contains(text, "305805") == invitation || strings.Contains(strings.ReplaceAll(text, "&amp;", "&"), link) != hasLink || strings.Contains(text, "[[") || strings.Contains(text, "{{") || !strings.Contains(text, "Acme") {
					t.Errorf("%s %s, %s:\n%s", name, locale, part, text)
				}
			}
			subject := subjectOf(t, got)
			if chinese := strings.ContainsFunc(subject, func(r rune) bool { return r > 0x4e00 }); chinese != (locale == "zh-CN") {
				t.Errorf("%s %s: %s", name, locale, subject)
			}
		}
	}
}

func TestKinds_HooksOff_OnlyTheOthers(t *testing.T) {
	if names := hooked(t, nil).Templates(); !slices.Equal(names, []string{"code"}) {
		t.Error(names)
	}
	if names := hooked(t, nil, "supabase").Templates(); len(names) != 7 || slices.Contains(names, "logto-sign-in") {
		t.Error(names)
	}
}

// A file of the operator replaces the built-in one of its name, and has to show the same.
func TestKinds_Own_ReplaceThem(t *testing.T) {
	composer := hooked(t, files("supabase-signup/en/subject.txt", "Welcome to Acme"), "supabase")
	request := sampleRequest(t)
	request.Template, request.Data = "supabase-signup", map[string]string{"link": "https://site.example"}
	if got := read(t, must.Get(composer.Compose(request))(t)); subjectOf(t, got) != "Welcome to Acme" || !strings.Contains(got.text, "https://site.example") {
		t.Errorf("%+v", got)
	}
	for path, want := range map[string]string{
		"supabase-signup/en/text.txt":               "does not show {{.Code}}",
		"logto-organization-invitation/en/text.txt": "does not show {{.Data.link}}",
	} {
		if _, err := message.LoadTemplates(files(path, "Hello"), "en", "supabase", "logto"); err == nil || err.Error() != "template "+path+": "+want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Only an email with a link in its place may lack the code.
func TestCheck_NoCode_OnlyWhereALinkReplacesIt(t *testing.T) {
	composer := hooked(t, nil, "supabase", "logto")
	for template, want := range map[string]bool{"code": false, "supabase-invite": false, "logto-organization-invitation": true} {
		request := sampleRequest(t)
		request.Template, request.Code, request.Data = template, "", map[string]string{"link": "https://site.example"}
		if wrong := composer.Check(request); (len(wrong) == 0) != want {
			t.Errorf("%s: %v", template, wrong)
		}
	}
}
