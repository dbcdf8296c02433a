package bounce_test

import (
	"bytes"
	"context"
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
	"sync/atomic"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/suppression/bounce"
	"github.com/mailgate/mailgate/throttle"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

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

func genuine(t *testing.T, h *bounce.Hook, header func(string) string, body string) bool {
	t.Helper()
	return genuineAt(t, h, header, body, at)
}

func genuineAt(t *testing.T, h *bounce.Hook, header func(string) string, body string, now time.Time) bool {
	t.Helper()
	ok, err := h.Genuine(header, []byte(body), now)
	must.OK(t, err)
	return ok
}

// The example that SendGrid tests its own libraries with.
const (
	sendGridKey       = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
	sendGridSignature = "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="
	sendGridBody      = `[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]` + "\r\n"
)

func TestSendGrid_OwnExample_Genuine(t *testing.T) {
	h := must.Get(bounce.New("sendgrid", sendGridKey, nil))(t)
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
	h := must.Get(bounce.New("resend", resendSecret, nil))(t)
	const body = `{"type":"email.bounced"}`
	sign := func(secret string, when time.Time) func(string) string {
		signature := must.Get(must.Get(webhooks.NewWebhook(secret))(t).Sign("msg_1", when, []byte(body)))(t)
		return headers("svix-id", "msg_1", "svix-timestamp", strconv.FormatInt(when.Unix(), 10), "svix-signature", signature)
	}
	if !genuine(t, h, sign(resendSecret, at), body) || genuine(t, h, sign(resendSecret, at), body+" ") || genuine(t, h, headers(), body) ||
		genuine(t, h, sign("whsec_"+base64.StdEncoding.EncodeToString([]byte("another secret of 24 bytes")), at), body) {
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
	const dir = "../../hooks/testdata/"
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile(dir+"signatures.json"))(t), &made))
	h, checked := must.Get(bounce.New("resend", strings.TrimPrefix(made.Secrets[0], "v1,"), nil))(t), 0
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
	return mailgunAt(at, "651869375b9df3c98fc15c4889b102119add1235c38fc92824", event)
}

func mailgunAt(when time.Time, token, event string) string {
	mac := hmac.New(sha256.New, []byte(mailgunKey))
	fmt.Fprintf(mac, "%d%s", when.Unix(), token)
	return fmt.Sprintf(`{"signature":{"timestamp":"%d","token":"%s","signature":"%x"},"event-data":%s}`, when.Unix(), token, mac.Sum(nil), event)
}

// Mailgun signs a token and not its event: a token that was seen counts for its own event and no other, wherever it
// begins, and for three days.
func TestMailgun_SeenToken_ForItsOwnEvent(t *testing.T) {
	r := newRig(t, true)
	h := must.Get(bounce.New("mailgun", mailgunKey, nil))(t)
	report := func(what, body string, want bounce.Outcome, victims ...suppression.Reason) {
		t.Helper()
		e := must.Get(h.Read(t.Context(), []byte(body)))(t)[0]
		outcome, _, err := r.Apply(t.Context(), r.identity, "mailgun", e)
		must.OK(t, err)
		if found := must.Get(r.list.Find(r.parse("victim@example.com")))(t); outcome != want || len(found) != len(victims) {
			t.Errorf("%s: %s, want %s; suppressed: %v", what, outcome, want, found)
		}
	}
	const complaint = `{"event":"complained","recipient":"victim@example.com","message":%s}`
	seen, forged := fmt.Sprintf(complaint, r.sent("mallory@example.com")), fmt.Sprintf(complaint, r.sent("victim@example.com"))
	report("delivered", mailgun(`{"event":"delivered","recipient":"mallory@example.com"}`), bounce.Counted)
	report("a complaint with its token", mailgun(forged), bounce.Unproven)
	report("without a proof", mailgun(fmt.Sprintf(complaint, "{}")), bounce.Unproven)
	cut := strings.Replace(mailgun(forged), fmt.Sprintf(`"%d","token":"65`, at.Unix()), fmt.Sprintf(`"%d65","token":"`, at.Unix()), 1)
	if genuine(t, h, headers(), cut) {
		t.Error("a token that begins elsewhere is genuine")
	}
	report("a token that begins elsewhere", cut, bounce.Unproven)
	report("the same event again", mailgun(`{"event":"delivered","recipient":"mallory@example.com"}`), bounce.Counted)
	report("a proof of another", mailgunAt(at, "token-2", seen), bounce.Unproven)
	report("its own", mailgunAt(at, "token-3", forged), bounce.Applied, suppression.Complaint)
	report("its own again", mailgunAt(at, "token-3", forged), bounce.Repeated, suppression.Complaint)
	for age, want := range map[time.Duration]bool{-72 * time.Hour: true, -73 * time.Hour: false, 73 * time.Hour: false} {
		if genuine(t, h, headers(), mailgunAt(at.Add(age), "token-4", forged)) != want {
			t.Errorf("signed at %s: genuine is %t", age, !want)
		}
	}
}

func TestSecrets_Wrong_NotGenuine(t *testing.T) {
	h := must.Get(bounce.New("mailgun", mailgunKey, nil))(t)
	body := mailgun(`{"event":"failed"}`)
	if !genuine(t, h, headers(), body) || genuine(t, h, headers(), strings.Replace(body, "17951", "17952", 1)) || genuine(t, h, headers(), "{}") || genuine(t, h, headers(), "x") {
		t.Error("Mailgun: a signature by the key counts, and no other")
	}
	for name, setting := range map[string]string{"postmark": "user:0123456789abcdef", "brevo": "0123456789abcdef"} {
		h := must.Get(bounce.New(name, setting, nil))(t)
		want := map[string]string{"postmark": "Basic " + base64.StdEncoding.EncodeToString([]byte(setting)), "brevo": "Bearer " + setting}[name]
		for shown, ok := range map[string]bool{want: true, "": false, want + "x": false, strings.ToLower(want): false, "Basic ": false, "Bearer ": false} {
			if genuine(t, h, headers("Authorization", shown), "{}") != ok {
				t.Errorf("%s: %q", name, shown)
			}
		}
	}
	for name, setting := range map[string]string{"ses": "arn:aws:sqs:eu-west-1:123456789012:x", "sendgrid": "MFkw", "postmark": "user:short", "resend": "whsec_c2hvcnQ="} {
		if _, err := bounce.New(name, setting, nil); err == nil || strings.Contains(err.Error(), "short") {
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
		h := must.Get(bounce.New(c.provider, settings[c.provider], nil))(t)
		var got []read
		for _, e := range must.Get(h.Read(t.Context(), []byte(c.body)))(t) {
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

// rig is a receiver with its list and proofs.
type rig struct {
	*bounce.Receiver
	t        *testing.T
	list     *suppression.List
	proofs   *proof.Proofs
	identity address.Identity
	now      atomic.Int64
	store    *cache.Store
}

func newRig(t *testing.T, withoutProof bool) *rig {
	r := &rig{t: t, identity: must.Get(address.NewIdentity(true))(t)}
	r.now.Store(at.UnixMilli())
	r.store = must.Get(cache.Open(cache.Options{Now: r.now.Load}))(t)
	r.list = must.Get(suppression.Open(t.Context(), suppression.Options{Table: r.store.Table("s"), Now: r.now.Load, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(r.list.Close)
	r.proofs = must.Get(proof.New(nil, bytes.Repeat([]byte("s"), 32)))(t)
	r.Receiver = &bounce.Receiver{Suppressions: r.list, Proofs: r.proofs, Records: keyed.Local(r.store.Table("b")), WithoutProof: withoutProof, Now: r.now.Load}
	return r
}

func (r *rig) parse(to string) address.Address {
	return must.Get(address.Parse(to, r.identity))(r.t)
}

// sent is the text of an event about an email to an address.
func (r *rig) sent(to string) string {
	return `{"smtp-id":"<` + r.proofs.Make(throttle.NewID(), r.now.Load(), r.parse(to)) + `@acme.example>"}`
}

func (r *rig) apply(what, to string, kind bounce.Kind, text string, want bounce.Outcome, reasons ...suppression.Reason) {
	r.t.Helper()
	outcome, _, err := r.Apply(r.t.Context(), r.identity, "sendgrid", bounce.Event{Address: to, Kind: kind, Text: text})
	must.OK(r.t, err)
	var got []suppression.Reason
	if to != "" {
		for _, e := range must.Get(r.list.Find(r.parse(to)))(r.t) {
			got = append(got, e.Reason)
		}
	}
	if outcome != want || !reflect.DeepEqual(got, reasons) {
		r.t.Errorf("%s: %s, suppressed for %v; want %s, %v", what, outcome, got, want, reasons)
	}
}

func (r *rig) remove(to string) {
	must.OK(r.t, r.list.Remove(r.t.Context(), r.parse(to)))
}

// What would lock a victim out changes nothing.
func TestApply_Attacks_NothingSuppressed(t *testing.T) {
	r := newRig(t, false)
	other := must.Get(proof.New(nil, []byte("the secret of another sender")))(t)
	foreign := other.Make(throttle.NewID(), at.UnixMilli(), r.parse("victim@gmail.com"))
	r.apply("an email of another sender in the account", "victim@gmail.com", bounce.Hard, "<20180812@example.org>", bounce.Unproven)
	r.apply("a forged proof", "victim@gmail.com", bounce.Complaint, foreign, bounce.Unproven)
	r.apply("a leaked Message-ID of another mailbox", "victim@gmail.com", bounce.Complaint, r.sent("attacker@gmail.com"), bounce.Unproven)
	r.apply("that of a tag of the victim's", "victim@gmail.com", bounce.Hard, r.sent("victim+x@gmail.com"), bounce.Unproven)
	r.apply("one of several recipients", "", bounce.Complaint, r.sent("victim@gmail.com"), bounce.Unproven)
	old := r.sent("victim@gmail.com")
	r.now.Add(proof.Life)
	r.apply("an email of long ago", "victim@gmail.com", bounce.Complaint, old, bounce.Unproven)
	r.apply("a bounce of a tag", "victim+x@gmail.com", bounce.Hard, r.sent("victim+x@gmail.com"), bounce.Applied, suppression.HardBounce)
	if found := must.Get(r.list.Find(r.parse("victim@gmail.com")))(t); len(found) != 0 {
		t.Errorf("a bounce of a tag suppresses the mailbox: %v", found)
	}
}

// An event is applied once, also after an operator has removed what it did, and whatever else was reported.
func TestApply_RepeatedAndOutOfOrder_Once(t *testing.T) {
	r := newRig(t, false)
	text := r.sent("Alice@example.com")
	r.apply("soft", "alice@example.com", bounce.Soft, text, bounce.Counted)
	r.apply("a delivery", "alice@example.com", bounce.Other, text, bounce.Counted)
	r.apply("hard", "alice@example.com", bounce.Hard, text, bounce.Applied, suppression.HardBounce)
	r.apply("again", "alice@example.com", bounce.Hard, text+" in another envelope", bounce.Repeated, suppression.HardBounce)
	r.apply("a complaint about the same email", "alice@example.com", bounce.Complaint, text, bounce.Applied, suppression.Complaint, suppression.HardBounce)
	r.apply("soft, late", "alice@example.com", bounce.Soft, text, bounce.Counted, suppression.Complaint, suppression.HardBounce)
	r.remove("alice@example.com")
	for range 2 {
		r.apply("hard, replayed", "alice@example.com", bounce.Hard, text, bounce.Repeated)
		r.apply("complaint, replayed", "alice@example.com", bounce.Complaint, text, bounce.Repeated)
		r.now.Add(proof.Life - 1)
	}
	r.now.Add(10)
	r.apply("after its record", "alice@example.com", bounce.Complaint, text, bounce.Unproven)
	r.apply("another email", "alice@example.com", bounce.Hard, r.sent("alice@example.com"), bounce.Applied, suppression.HardBounce)
	r.now.Add(30 * 86_400_000)
	r.apply("thirty days later", "alice@example.com", bounce.Other, "", bounce.Counted)
}

// On the provider's word alone, still once, and never against a proof of another mailbox.
func TestApply_WithoutProof_IfTheOperatorSaysSo(t *testing.T) {
	r := newRig(t, true)
	r.apply("no proof", "alice@example.com", bounce.Hard, "event 1", bounce.Applied, suppression.HardBounce)
	r.remove("alice@example.com")
	r.apply("again", "alice@example.com", bounce.Hard, "event 1", bounce.Repeated)
	r.apply("another event", "alice@example.com", bounce.Hard, "event 2", bounce.Applied, suppression.HardBounce)
	r.apply("the proof of another", "bob@example.com", bounce.Complaint, r.sent("carol@example.com"), bounce.Unproven)
}

// While the list cannot be changed, an event is not lost: its repeat is applied.
func TestApply_StoreAway_Unavailable(t *testing.T) {
	r := newRig(t, false)
	text := r.sent("alice@example.com")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := r.Apply(ended, r.identity, "ses", bounce.Event{Address: "alice@example.com", Kind: bounce.Hard, Text: text}); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	r.apply("the repeat", "alice@example.com", bounce.Hard, text, bounce.Applied, suppression.HardBounce)
}
