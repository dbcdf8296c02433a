package hooks_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
)

// signatures are those that the reference libraries made: testdata/sign.mjs.
type signatures struct {
	Secrets []string
	Signed  []struct {
		Library, File, ID, Timestamp string
		Signatures                   []string
	}
}

func readSignatures(t *testing.T) (all signatures) {
	t.Helper()
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile("testdata/signatures.json"))(t), &all))
	return all
}

var signedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newSupabase(t *testing.T, secrets ...string) *hooks.Supabase {
	t.Helper()
	return hooks.NewSupabase(must.Get(hooks.ParseSecrets(strings.Join(secrets, "|")))(t), "https://project.supabase.example/auth/v1/")
}

func headers(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if strings.EqualFold(pairs[i], name) {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestGenuine_ReferenceLibraries_OnlyTheirSignatures(t *testing.T) {
	all := readSignatures(t)
	if len(all.Signed) != 6 {
		t.Fatalf("%d signatures", len(all.Signed))
	}
	for _, s := range all.Signed {
		body := must.Get(os.ReadFile("testdata/" + s.File))(t)
		old, next := s.Signatures[0], s.Signatures[1]
		check := func(name string, want bool, secrets []string, id, at, signature string, body []byte, now time.Time) {
			t.Helper()
			header := headers("webhook-id", id, "webhook-timestamp", at, "webhook-signature", signature)
			if got := genuineAt(t, newSupabase(t, secrets...), header, string(body), now); got != want {
				t.Errorf("%s of %s, %s: genuine is %t", s.File, s.Library, name, got)
			}
		}
		one, both := all.Secrets[:1], all.Secrets
		check("as signed", true, one, s.ID, s.Timestamp, old, body, signedAt)
		check("both secrets, the old one signs", true, both, s.ID, s.Timestamp, old, body, signedAt)
		check("both secrets, the new one signs", true, both, s.ID, s.Timestamp, next, body, signedAt)
		check("Supabase joins two", true, all.Secrets[1:], s.ID, s.Timestamp, old+", "+next, body, signedAt)
		check("the standard joins two", true, all.Secrets[1:], s.ID, s.Timestamp, old+" "+next, body, signedAt)
		check("four minutes late", true, one, s.ID, s.Timestamp, old, body, signedAt.Add(4*time.Minute))
		check("six minutes late", false, one, s.ID, s.Timestamp, old, body, signedAt.Add(6*time.Minute))
		check("six minutes early", false, one, s.ID, s.Timestamp, old, body, signedAt.Add(-6*time.Minute))
		check("another secret", false, one, s.ID, s.Timestamp, next, body, signedAt)
		check("no signature", false, one, s.ID, s.Timestamp, "", body, signedAt)
		check("an empty signature", false, one, s.ID, s.Timestamp, "v1,", body, signedAt)
		check("another version", false, one, s.ID, s.Timestamp, strings.Replace(old, "v1,", "v1a,", 1), body, signedAt)
		check("no id", false, one, "", s.Timestamp, old, body, signedAt)
		check("another id", false, one, s.ID+"2", s.Timestamp, old, body, signedAt)
		check("no time", false, one, s.ID, "", old, body, signedAt)
		check("another time", false, one, s.ID, "1795176001", old, body, signedAt)
		check("a time that is no number", false, one, s.ID, s.Timestamp+"x", old, body, signedAt)
		check("a time beyond all", false, one, s.ID, "9223372036854775807", old, body, signedAt)
		check("another body", false, one, s.ID, s.Timestamp, old, append(bytes.Clone(body), ' '), signedAt)
		check("no body", false, one, s.ID, s.Timestamp, old, nil, signedAt)
	}
}

// The committed signatures are what the libraries of npm make.
func TestSignatures_Made_Alike(t *testing.T) {
	need.Long(t)
	need.Program(t, "npm")
	script := must.Get(filepath.Abs("testdata/sign.mjs"))(t)
	run := func(name string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Stderr = t.TempDir(), os.Stderr
		if name == "node" {
			npm := exec.CommandContext(t.Context(), "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "standardwebhooks@1.1.1", "svix@1.99.1")
			npm.Dir = cmd.Dir
			if out, err := npm.CombinedOutput(); err != nil {
				t.Fatalf("npm: %v\n%s", err, out)
			}
		}
		return must.Get(cmd.Output())(t)
	}
	if made := run("node", script); !bytes.Equal(made, must.Get(os.ReadFile("testdata/signatures.json"))(t)) {
		t.Errorf("testdata/signatures.json is not what the libraries make:\n%s", made)
	}
}

func TestParseSecrets_Wrong_Refused(t *testing.T) {
	for _, text := range []string{"", "v1,whsec_", "whsec_aWxpa2VzdXBhYmFzZXZlcnltdWNoYW5kaWhvcGV5b3Vkb3Rvbw==", "v1,whsec_c2hvcnQ=", "v1,whsec_***",
		"v1,whsec_aWxpa2VzdXBhYmFzZXZlcnltdWNoYW5kaWhvcGV5b3Vkb3Rvbw==|", "v1,whsec_aWxpa2VzdXBhYmFzZXZlcnltdWNoYW5kaWhvcGV5b3Vkb3Rvbw==,v1,whsec_aWxpa2VzdXBhYmFzZXZlcnltdWNoYW5kaWhvcGV5b3Vkb3Rvbw=="} {
		if _, err := hooks.ParseSecrets(text); err == nil || strings.Contains(err.Error(), "aWxp") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if text := must.Get(hooks.ParseSecrets(strings.Join(readSignatures(t).Secrets, "|")))(t).String(); text != "v1,whsec_***|v1,whsec_***" {
		t.Error(text)
	}
}

// mail is what is to be sent, short.
type mail struct{ To, Template, Code, Link string }

func mails(emails []delivery.Send) (all []mail) {
	for _, e := range emails {
		all = append(all, mail{e.Mail.To.String(), e.Mail.Template, e.Mail.Code, e.Mail.Data["link"]})
	}
	return all
}

const verify = "https://project.supabase.example/auth/v1/verify?redirect_to=https%3A%2F%2Fapp.example%2Fwelcome&token="

// changed returns the call of a sign-up with another text in it.
func changed(t *testing.T, pairs ...string) []byte {
	t.Helper()
	text := string(must.Get(os.ReadFile("testdata/signup.json"))(t))
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("no %s in the call", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return []byte(text)
}

func TestSupabase_EachKind_TemplateCodeAndLink(t *testing.T) {
	hook, hash := newSupabase(t, readSignatures(t).Secrets...), "7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0"
	for kind, template := range map[string]string{
		"signup": "signup", "recovery": "recovery", "magiclink": "magiclink", "email": "magiclink", "invite": "invite",
	} {
		emails, _, err := hook.Emails(&hooks.Call{Body: changed(t, `:"signup"`, `:"`+kind+`"`), Began: signedAt})
		want := []mail{{"alice@example.com", "supabase-" + template, "305805", verify + hash + "&type=" + kind}}
		if got := mails(emails); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %v\nwant %v", kind, err, got, want)
		}
	}
	emails, _, err := hook.Emails(&hooks.Call{Body: changed(t, `:"signup"`, `:"reauthentication"`, hash, ""), Began: signedAt})
	if got := mails(emails); err != nil || !reflect.DeepEqual(got, []mail{{"alice@example.com", "supabase-reauthentication", "305805", ""}}) {
		t.Errorf("reauthentication: %v, %v", got, err)
	}
}

// The two emails of a secure change cross token and hash; a change that the new address alone confirms is one.
func TestSupabase_EmailChange_TokensAreCrossed(t *testing.T) {
	hook := newSupabase(t, readSignatures(t).Secrets...)
	body := must.Get(os.ReadFile("testdata/email_change.json"))(t)
	emails, _, err := hook.Emails(&hooks.Call{Body: body, Began: signedAt})
	want := []mail{
		{"alice@new.example", "supabase-email-change", "871923", verify + "7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0&type=email_change"},
		{"alice@example.com", "supabase-email-change", "305805", verify + "a9e0c0f7b1f54d5bb55e5d1f0f4dc1f1d6b21b9f3f5ec3d3c8a1d1aa&type=email_change"},
	}
	if got := mails(emails); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %v\nwant %v", err, got, want)
	}
	body = bytes.Replace(body, []byte(`"token_new":"871923","token_hash_new":"a9e0c0f7b1f54d5bb55e5d1f0f4dc1f1d6b21b9f3f5ec3d3c8a1d1aa"`), []byte(`"token_new":"","token_hash_new":""`), 1)
	emails, _, err = hook.Emails(&hooks.Call{Body: body, Began: signedAt})
	want = []mail{{"alice@new.example", "supabase-email-change", "305805", want[0].Link}}
	if got := mails(emails); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %v\nwant %v", err, got, want)
	}
}

func TestSupabase_BadCall_SaysWhat(t *testing.T) {
	hook := newSupabase(t, readSignatures(t).Secrets...)
	for want, body := range map[string][]byte{
		`email_action_type: no email of the kind "password_changed_notification" is known`:         changed(t, `:"signup"`, `:"password_changed_notification"`),
		`email_action_type: no email of the kind "" is known`:                                      changed(t, `:"signup"`, `:""`),
		`email_action_type: no email of the kind "\u202e` + strings.Repeat("a", 63) + `" is known`: changed(t, `:"signup"`, `:"\u202e`+strings.Repeat("a", 1000)+`"`),
		`email_action_type: no email of the kind "../../code" is known`:                            changed(t, `:"signup"`, `:"../../code"`),
		"user.email: the address is empty":                                                         changed(t, `"email":"alice@example.com","phone"`, `"email":"","phone"`),
		"email_data has no token for user.email":                                                   changed(t, `"305805"`, `""`),
		"the call is not the JSON that this hook takes: see /email_data/token":                     changed(t, `"305805"`, `305805`),
		"the call is not the JSON that this hook takes: see /metadata/time":                        changed(t, "11:59:59.900Z", "noon"),
		"the call is not the JSON that this hook takes: see byte 11":                               changed(t, `"metadata":`, `"alice":1,"alice":`),
		"the call is not the JSON that this hook takes: see the start":                             []byte("[]"),
		"the call is not the JSON that this hook takes: see byte 0":                                nil,
	} {
		_, _, err := hook.Emails(&hooks.Call{Body: body, Began: signedAt})
		if err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(want)) || strings.Contains(err.Error(), "alice") {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// Nothing of a call is in the host of a link, and what is in its query is quoted.
func TestSupabase_Link_HostIsConfigured(t *testing.T) {
	hook := newSupabase(t, readSignatures(t).Secrets...)
	body := changed(t, "https://app.example/welcome", "https://evil.example/#@x&token=1", `:"7d5b`, `:"@evil.example/?\"><b>&type=x#`)
	emails, _, err := hook.Emails(&hooks.Call{Body: body, Began: signedAt})
	if err != nil {
		t.Fatal(err)
	}
	link := must.Get(url.Parse(emails[0].Mail.Data["link"]))(t)
	if link.Host != "project.supabase.example" || link.Path != "/auth/v1/verify" || link.Fragment != "" || len(link.Query()["token"]) != 1 || link.Query().Get("type") != "signup" {
		t.Errorf("the link is %s", link)
	}
}

// What a visitor appends to an address of the site does not become a link of its own in an email.
func TestSupabase_RedirectTo_NoSecondLink(t *testing.T) {
	hook := newSupabase(t, readSignatures(t).Secrets...)
	for given, want := range map[string]string{
		"https://app.example/a?b=c%20d&e=[f]#g":        "https://app.example/a?b=c%20d&e=[f]#g",
		"https://app.example/ https://evil.example/":   "https://app.example/%20https://evil.example/",
		`https://app.example/\n<https://evil.example>`: "https://app.example/%0A%3Chttps://evil.example%3E",
		"https://app.example/ø|":                       "https://app.example/%C3%B8%7C",
	} {
		emails, _, err := hook.Emails(&hooks.Call{Body: changed(t, "https://app.example/welcome", given), Began: signedAt})
		if err != nil || emails[0].Mail.Data["redirect_to"] != want {
			t.Errorf("%s: %v, %v", given, emails, err)
		}
	}
}

// All tries of a call together have five seconds. A time long past is that of another clock.
func TestSupabase_HandOver_CountsFromTheFirstTry(t *testing.T) {
	hook := newSupabase(t, readSignatures(t).Secrets...)
	const began = `"2026-11-20T11:59:59.900Z"`
	for text, want := range map[string]time.Duration{
		began: 3400 * time.Millisecond, `"2026-11-20T11:59:58Z"`: 1500 * time.Millisecond, `"2026-11-20T11:59:57Z"`: 3500 * time.Millisecond,
		`"2026-11-20T12:00:09Z"`: 3500 * time.Millisecond, `"0001-01-01T00:00:00Z"`: 3500 * time.Millisecond,
	} {
		_, by, err := hook.Emails(&hooks.Call{Body: changed(t, began, text), Began: signedAt})
		if err != nil || by.Sub(signedAt) != want {
			t.Errorf("%s: %v, %v", text, by, err)
		}
	}
}

func TestSupabase_Answer_ErrorsHaveStatus200(t *testing.T) {
	for status, want := range map[int]string{200: "{}", 429: `{"error":{"http_code":429,"message":"wait"}}`, 503: `{"error":{"http_code":503,"message":"wait"}}`} {
		code, kind, body := newSupabase(t, readSignatures(t).Secrets...).Answer(status, "wait")
		if code != 200 || kind != "application/json" || string(body) != want {
			t.Errorf("%d: %d %s %s", status, code, kind, body)
		}
	}
}
