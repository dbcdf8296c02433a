package hooks_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/suppression/bounce"
	"github.com/mailgate/mailgate/throttle"
)

// genuine asks a hook about a call. The only other answer is hooks.ErrForged.
func genuine(t *testing.T, h hooks.Hook, header func(string) string, body string) bool {
	t.Helper()
	return genuineAt(t, h, header, body, signedAt)
}

func genuineAt(t *testing.T, h hooks.Hook, header func(string) string, body string, now time.Time) bool {
	t.Helper()
	err := h.Genuine(&hooks.Call{Header: header, Body: []byte(body), Now: now})
	if err != nil && !errors.Is(err, hooks.ErrForged) {
		t.Fatal(err)
	}
	return err == nil
}

// events reads a call as if it were genuine.
func events(t *testing.T, h hooks.Reporter, body string) ([]bounce.Event, error) {
	t.Helper()
	call := &hooks.Call{Header: headers(), Body: []byte(body), Now: signedAt}
	_ = h.Genuine(call)
	return h.Events(t.Context(), call)
}

// The example that SendGrid tests its own libraries with.
const (
	sendGridKey       = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
	sendGridSignature = "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="
	sendGridBody      = `[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]` + "\r\n"
)

func TestSendGrid_OwnExample_Genuine(t *testing.T) {
	h := must.Get(hooks.NewSendGrid(sendGridKey))(t)
	const name = "X-Twilio-Email-Event-Webhook-"
	check := func(what string, want bool, signature, timestamp, body string) {
		t.Helper()
		for age, fresh := range map[time.Duration]bool{0: true, 24 * time.Hour: true, 72*time.Hour + time.Second: false, -73 * time.Hour: false} {
			if got := genuineAt(t, h, headers(name+"Signature", signature, name+"Timestamp", timestamp), body, time.Unix(1600112502, 0).Add(age)); got != (want && fresh) {
				t.Errorf("%s, after %s: genuine is %t", what, age, got)
			}
		}
	}
	check("as signed", true, sendGridSignature, "1600112502", sendGridBody)
	check("another time", false, sendGridSignature, "1600112503", sendGridBody)
	check("another body", false, sendGridSignature, "1600112502", strings.TrimSpace(sendGridBody))
	check("no signature", false, "", "1600112502", sendGridBody)
	check("no signature at all", false, "AAAA", "", "")
	other := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	sum := sha256.Sum256([]byte("1600112502" + sendGridBody))
	check("another key", false, base64.StdEncoding.EncodeToString(must.Get(ecdsa.SignASN1(rand.Reader, other, sum[:]))(t)), "1600112502", sendGridBody)
}

const resendSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// Signed by the library of Standard Webhooks.
func TestResend_Signed_Genuine(t *testing.T) {
	h := must.Get(hooks.NewResend(resendSecret))(t)
	const body = `{"type":"email.bounced"}`
	sign := func(secret string, when time.Time) func(string) string {
		signature := must.Get(must.Get(webhooks.NewWebhook(secret))(t).Sign("msg_1", when, []byte(body)))(t)
		return headers("svix-id", "msg_1", "svix-timestamp", strconv.FormatInt(when.Unix(), 10), "svix-signature", signature)
	}
	if !genuine(t, h, sign(resendSecret, signedAt), body) || genuine(t, h, sign(resendSecret, signedAt), body+" ") || genuine(t, h, headers(), body) ||
		genuine(t, h, sign("whsec_"+base64.StdEncoding.EncodeToString([]byte("another secret of 24 bytes")), signedAt), body) {
		t.Error("a signature by the secret of the setting counts, and no other")
	}
}

// The signatures that svix makes in JavaScript, by which Resend signs.
func TestResend_SignedBySvix_Genuine(t *testing.T) {
	var made struct {
		Secrets []string
		Signed  []struct {
			Library, File, ID, Timestamp string
			Signatures                   []string
		}
	}
	const dir = "testdata/"
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile(dir+"signatures.json"))(t), &made))
	h, checked := must.Get(hooks.NewResend(strings.TrimPrefix(made.Secrets[0], "v1,")))(t), 0
	for _, s := range made.Signed {
		body := string(must.Get(os.ReadFile(dir + s.File))(t))
		if s.Library != "svix" {
			continue
		}
		checked++
		for i, want := range []bool{true, false} {
			if got := genuine(t, h, headers("svix-id", s.ID, "svix-timestamp", s.Timestamp, "svix-signature", s.Signatures[i]), body); got != want {
				t.Errorf("%s, signature %d: genuine is %t", s.File, i, got)
			}
		}
	}
	if checked == 0 {
		t.Error("no signature of svix")
	}
}

const mailgunKey = "key-0123456789abcdef"

func mailgun(event string) string {
	return mailgunAt(signedAt, "651869375b9df3c98fc15c4889b102119add1235c38fc92824", event)
}

func mailgunAt(when time.Time, token, event string) string {
	mac := hmac.New(sha256.New, []byte(mailgunKey))
	fmt.Fprintf(mac, "%d%s", when.Unix(), token)
	return fmt.Sprintf(`{"signature":{"timestamp":"%d","token":"%s","signature":"%x"},"event-data":%s}`, when.Unix(), token, mac.Sum(nil), event)
}

// Mailgun signs a token and not its event: a token that was seen counts for its own event and no other, wherever it
// begins, and for three days.
func TestMailgun_SeenToken_ForItsOwnEvent(t *testing.T) {
	identity, now := must.Get(address.NewIdentity(true))(t), signedAt.UnixMilli
	store := must.Get(cache.Open(cache.Options{Now: now}))(t)
	list := must.Get(suppression.Open(t.Context(), suppression.Options{Table: store.Table("s"), Events: store.Table("e"), Now: now, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(list.Close)
	proofs := must.Get(proof.New(nil, bytes.Repeat([]byte("s"), 32)))(t)
	receiver := &bounce.Receiver{Suppressions: list, Proofs: proofs, Records: keyed.Local(store.Table("b")), WithoutProof: true, Now: now}
	parse := func(to string) address.Address { return must.Get(address.Parse(to, identity))(t) }
	sent := func(to string) string {
		return `{"smtp-id":"<` + proofs.Make(throttle.NewID(), now(), parse(to)) + `@acme.example>"}`
	}
	h := must.Get(hooks.NewMailgun(mailgunKey))(t)
	report := func(what, body string, want bounce.Outcome, victims ...suppression.Reason) {
		t.Helper()
		e := must.Get(events(t, h, body))(t)[0]
		outcome, _, err := receiver.Apply(t.Context(), identity, "mailgun", e)
		must.OK(t, err)
		if found := must.Get(list.Find(parse("victim@example.com")))(t); outcome != want || len(found) != len(victims) {
			t.Errorf("%s: %s, want %s; suppressed: %v", what, outcome, want, found)
		}
	}
	const complaint = `{"event":"complained","recipient":"victim@example.com","message":%s}`
	seen, forged := fmt.Sprintf(complaint, sent("mallory@example.com")), fmt.Sprintf(complaint, sent("victim@example.com"))
	report("delivered", mailgun(`{"event":"delivered","recipient":"mallory@example.com"}`), bounce.Counted)
	report("a complaint with its token", mailgun(forged), bounce.Unproven)
	report("without a proof", mailgun(fmt.Sprintf(complaint, "{}")), bounce.Unproven)
	cut := strings.Replace(mailgun(forged), fmt.Sprintf(`"%d","token":"65`, signedAt.Unix()), fmt.Sprintf(`"%d65","token":"`, signedAt.Unix()), 1)
	if genuine(t, h, headers(), cut) {
		t.Error("a token that begins elsewhere is genuine")
	}
	report("a token that begins elsewhere", cut, bounce.Unproven)
	report("the same event again", mailgun(`{"event":"delivered","recipient":"mallory@example.com"}`), bounce.Counted)
	report("a proof of another", mailgunAt(signedAt, "token-2", seen), bounce.Unproven)
	report("its own", mailgunAt(signedAt, "token-3", forged), bounce.Applied, suppression.Complaint)
	report("its own again", mailgunAt(signedAt, "token-3", forged), bounce.Repeated, suppression.Complaint)
	for age, want := range map[time.Duration]bool{-72 * time.Hour: true, -73 * time.Hour: false, 73 * time.Hour: false} {
		if genuine(t, h, headers(), mailgunAt(signedAt.Add(age), "token-4", forged)) != want {
			t.Errorf("signed at %s: genuine is %t", age, !want)
		}
	}
}

var providers = map[string]func(string) (hooks.Reporter, error){
	"ses": hooks.NewSES, "sendgrid": hooks.NewSendGrid, "mailgun": hooks.NewMailgun, "postmark": hooks.NewPostmark, "resend": hooks.NewResend, "brevo": hooks.NewBrevo,
}

func TestSecrets_Wrong_NotGenuine(t *testing.T) {
	h := must.Get(hooks.NewMailgun(mailgunKey))(t)
	body := mailgun(`{"event":"failed"}`)
	if !genuine(t, h, headers(), body) || genuine(t, h, headers(), strings.Replace(body, "17951", "17952", 1)) || genuine(t, h, headers(), "{}") || genuine(t, h, headers(), "x") {
		t.Error("Mailgun: a signature by the key counts, and no other")
	}
	for name, setting := range map[string]string{"postmark": "user:0123456789abcdef", "brevo": "0123456789abcdef"} {
		h := must.Get(providers[name](setting))(t)
		want := map[string]string{"postmark": "Basic " + base64.StdEncoding.EncodeToString([]byte(setting)), "brevo": "Bearer " + setting}[name]
		for shown, ok := range map[string]bool{want: true, "": false, want + "x": false, strings.ToLower(want): false, "Basic ": false, "Bearer ": false} {
			if genuine(t, h, headers("Authorization", shown), "{}") != ok {
				t.Errorf("%s: %q", name, shown)
			}
		}
	}
	for name, setting := range map[string]string{"ses": "arn:aws:sqs:eu-west-1:123456789012:x", "sendgrid": "MFkw", "postmark": "user:short", "resend": "whsec_c2hvcnQ="} {
		if _, err := providers[name](setting); err == nil || strings.Contains(err.Error(), "short") {
			t.Errorf("%s takes %s: %v", name, setting, err)
		}
	}
}

type read struct {
	Address string
	Kind    bounce.Kind
}

// Events as the providers' documentation shows them.
func TestRead_Documented_KindAndRecipient(t *testing.T) {
	settings := map[string]string{"sendgrid": sendGridKey, "resend": resendSecret, "mailgun": mailgunKey, "postmark": "user:0123456789abcdef", "brevo": "0123456789abcdef"}
	for _, c := range []struct {
		provider, body string
		want           []read
	}{
		{"sendgrid", `[
			{"email":"a@example.com","timestamp":1669651200,"smtp-id":"<14c5d75ce93.dfd.64b469@ismtpd-555>","event":"bounce","type":"bounce","bounce_classification":"Invalid Address","status":"5.0.0","reason":"500 unknown recipient"},
			{"email":"b@example.com","event":"bounce","type":"blocked","reason":"550 spam"},
			{"email":"c@example.com","event":"deferred","response":"400 try again later","attempt":"5"},
			{"email":"d@example.com","event":"spamreport"},
			{"email":"e@example.com","event":"dropped","reason":"Bounced Address"},
			{"email":7,"event":"bounce"}, 3,
			{"email":"f@example.com","event":"open","useragent":"Mozilla"}]`,
			[]read{{"a@example.com", bounce.Hard}, {"b@example.com", bounce.Soft}, {"c@example.com", bounce.Soft}, {"d@example.com", bounce.Complaint}, {"e@example.com", bounce.Other}, {"", bounce.Other}, {"", bounce.Other}, {"f@example.com", bounce.Other}}},
		{"mailgun", mailgun(`{"event":"failed","severity":"permanent","reason":"bounce","recipient":"a@example.com","message":{"headers":{"message-id":"20180812214658.1.0DF563D0B3597700@example.org"}},"delivery-status":{"code":550}}`), []read{{"a@example.com", bounce.Hard}}},
		{"mailgun", mailgun(`{"event":"failed","severity":"permanent","reason":"old","recipient":"a@example.com"}`), []read{{"a@example.com", bounce.Soft}}},
		{"mailgun", mailgun(`{"event":"failed","severity":"temporary","reason":"generic","recipient":"a@example.com"}`), []read{{"a@example.com", bounce.Soft}}},
		{"mailgun", mailgun(`{"event":"complained","recipient":"a@example.com"}`), []read{{"a@example.com", bounce.Complaint}}},
		{"mailgun", mailgun(`{"event":"delivered","recipient":"a@example.com"}`), []read{{"a@example.com", bounce.Other}}},
		{"postmark", `{"RecordType":"Bounce","ID":42,"Type":"HardBounce","TypeCode":1,"Name":"Hard bounce","MessageID":"00000000-0000-0000-0000-000000000000","Email":"a@example.com","From":"s@example.com","Metadata":{"mailgate":"x"}}`, []read{{"a@example.com", bounce.Hard}}},
		{"postmark", `{"RecordType":"Bounce","Type":"Transient","Email":"a@example.com"}`, []read{{"a@example.com", bounce.Soft}}},
		{"postmark", `{"RecordType":"SpamComplaint","Type":"SpamComplaint","Email":"a@example.com"}`, []read{{"a@example.com", bounce.Complaint}}},
		{"postmark", `{"RecordType":"Open","Recipient":"a@example.com"}`, []read{{"", bounce.Other}}},
		{"brevo", `{"event":"hard_bounce","email":"a@example.com","id":1,"message-id":"<x@smtp-relay.mailin.fr>","reason":"server is down","X-Mailin-custom":"some_custom_header"}`, []read{{"a@example.com", bounce.Hard}}},
		{"brevo", `[{"event":"soft_bounce","email":"a@example.com"},{"event":"spam","email":"b@example.com"}]`, []read{{"a@example.com", bounce.Soft}, {"b@example.com", bounce.Complaint}}},
		{"brevo", `{"event":"request","email":"a@example.com"}`, []read{{"a@example.com", bounce.Other}}},
		{"resend", `{"type":"email.bounced","created_at":"2024-11-22T23:41:12.126Z","data":{"email_id":"56761188-7520-42d8-8898-ff6fc54ce618","from":"Acme <onboarding@resend.dev>","to":["Bounced <bounced@resend.dev>"],"bounce":{"message":"The recipient's email address is on the suppression list","subType":"Suppressed","type":"Permanent"},"tags":{"category":"confirm_email"}}}`, []read{{"bounced@resend.dev", bounce.Hard}}},
		{"resend", `{"type":"email.bounced","data":{"to":["a@example.com"],"bounce":{"type":"Transient"}}}`, []read{{"a@example.com", bounce.Soft}}},
		{"resend", `{"type":"email.complained","data":{"to":["a@example.com","b@example.com"]}}`, []read{{"", bounce.Complaint}}},
		{"resend", `{"type":"email.delivered","data":{"to":["a@example.com"]}}`, []read{{"a@example.com", bounce.Other}}},
		{"resend", "\xff", []read{{"", bounce.Other}}},
	} {
		h := must.Get(providers[c.provider](settings[c.provider]))(t)
		var got []read
		for _, e := range must.Get(events(t, h, c.body))(t) {
			got = append(got, read{e.Address, e.Kind})
			if len(e.Text) == 0 {
				t.Errorf("%s: an event without its text", c.provider)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %.90s\n got %v\nwant %v", c.provider, c.body, got, c.want)
		}
	}
}
