package message

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	texttemplate "text/template"
)

//go:embed layouts
var layouts embed.FS

// kind is a built-in template that is made of a layout, which has its fields between [[ and ]].
type kind struct {
	name       string
	code, link bool
	titles     map[string]string // by locale
}

func titles(en, zh string) map[string]string { return map[string]string{"en": en, "zh": zh} }

// kinds are the emails that other systems ask for through hooks. The first part of a name is the hook.
var kinds = []kind{
	{"supabase-signup", true, true, titles("Confirm your email address", "确认您的邮箱地址")},
	{"supabase-recovery", true, true, titles("Reset your password", "重置您的密码")},
	{"supabase-magiclink", true, true, titles("Sign in", "登录")},
	{"supabase-invite", true, true, titles("Accept your invitation", "接受邀请")},
	{"supabase-email-change", true, true, titles("Confirm the change of your email address", "确认更换邮箱地址")},
	{"supabase-reauthentication", true, false, titles("Confirm that it is you", "验证您的身份")},
	{"logto-sign-in", true, false, titles("Sign in", "登录")},
	{"logto-register", true, false, titles("Create your account", "创建您的账号")},
	{"logto-forgot-password", true, false, titles("Reset your password", "重置您的密码")},
	{"logto-organization-invitation", false, true, titles("Accept your invitation", "接受邀请")},
	{"logto-generic", true, false, titles("Your code", "您的验证码")},
	{"logto-user-permission-validation", true, false, titles("Confirm that it is you", "验证您的身份")},
	{"logto-bind-new-identifier", true, false, titles("Add this email address to your account", "将此邮箱地址绑定到您的账号")},
	{"logto-mfa-verification", true, false, titles("Confirm that it is you", "验证您的身份")},
	{"logto-bind-mfa", true, false, titles("Set up two-step verification", "设置两步验证")},
}

// criticalKinds reach an address that bounced, unless a template.yaml says otherwise.
var criticalKinds = []string{"supabase-recovery", "logto-forgot-password"}

// sentences are those that all kinds share, by locale.
var sentences = map[string]struct{ open, code, either, link, note string }{
	"en": {"Open the page", "Enter the code on the page that asked for it.", "Enter the code on the page that asked for it, or open the link.",
		"Open the link to go on.", "Do not share this email with anyone, even if they ask by phone, chat or email."},
	"zh": {"打开页面", "请在原页面输入验证码。", "请在原页面输入验证码，或打开链接。",
		"请打开链接以继续。", "请勿将本邮件告诉任何人，即使对方通过电话、聊天或邮件索取。"},
}

// addKinds adds the kinds of these hooks.
func (s sources) addKinds(hooks []string) error {
	for _, k := range kinds {
		for _, hook := range hooks {
			if !strings.HasPrefix(k.name, hook+"-") {
				continue
			}
			for locale := range k.titles {
				if err := s.addKind(k, locale); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s sources) addKind(k kind, locale string) error {
	words := sentences[locale]
	use := words.code
	switch {
	case !k.code:
		use = words.link
	case k.link:
		use = words.either
	}
	path := k.name + "/" + locale
	made := &source{path: path, files: map[string]file{}}
	s[path] = made
	for _, name := range []string{subjectFile, textFile, bodyFile} {
		text, err := fs.ReadFile(layouts, "layouts/"+locale+"/"+name)
		if err != nil {
			return plainPathError(err)
		}
		layout, err := texttemplate.New(path+"/"+name).Delims("[[", "]]").Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		err = layout.Execute(&out, map[string]any{"Title": k.titles[locale], "Code": k.code, "Link": k.link, "Open": words.open, "Use": use, "Note": words.note})
		if err != nil {
			return fmt.Errorf("making the template %s: %w", path, err)
		}
		made.files[name] = file{path + "/" + name, out.String()}
	}
	return nil
}

// isLinked reports whether the emails of a template have a link in place of a code.
func isLinked(name string) bool {
	for _, k := range kinds {
		if k.name == name {
			return !k.code
		}
	}
	return false
}
