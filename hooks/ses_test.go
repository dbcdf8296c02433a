package hooks_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/suppression/bounce"
)

const (
	topic    = "arn:aws:sns:eu-west-1:123456789012:bounces"
	certPath = "/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem"
	certURL  = "https://sns.eu-west-1.amazonaws.com" + certPath
	confirm  = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=" + topic + "&Token=2336412f37"
)

// amazon signs as Amazon SNS does, and answers for its hosts.
type amazon struct {
	hooks.Reporter
	t       *testing.T
	key     *rsa.PrivateKey
	network *http.Transport // whose calls all come here

	mu    sync.Mutex
	asked []string
	files map[string]func(http.ResponseWriter)
}

func newAmazon(t *testing.T) *amazon {
	a := &amazon{t: t, key: must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: signedAt.Add(-time.Hour), NotAfter: signedAt.Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, form, form, &a.key.PublicKey, a.key))(t)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a.files = map[string]func(http.ResponseWriter){certPath: func(w http.ResponseWriter) { w.Write(certificate) }, "/": func(http.ResponseWriter) {}}
	authority := servertest.NewAuthority(t)
	hour := time.Hour.Milliseconds()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.asked = append(a.asked, r.Host+r.URL.Path)
		file := a.files[r.URL.Path]
		a.mu.Unlock()
		if file != nil {
			file(w)
			return
		}
		w.WriteHeader(404)
	}))
	now := time.Now().UnixMilli()
	server.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Certificate(now-hour, now+hour, "sns.eu-west-1.amazonaws.com", "sns.us-west-2.amazonaws.com", "evil.example")}}
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM())
	a.network = &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	a.Reporter = must.Get(hooks.NewSESOver(a.network, topic+", arn:aws:sns:us-east-1:123456789012:other"))(t)
	return a
}

// requests are those that Amazon has got.
func (a *amazon) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// message is a signed one, as the documentation of Amazon SNS has it.
func (a *amazon) message(version string, change func(map[string]string)) []byte {
	m := map[string]string{
		"Type": "Notification", "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "TopicArn": topic, "Subject": "Amazon SES",
		"Message": sesBounce, "Timestamp": "2026-11-20T12:00:00.000Z", "SignatureVersion": version, "SigningCertURL": certURL,
		"UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
	}
	if change != nil {
		change(m)
	}
	names := []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	if m["Type"] != "Notification" {
		names = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	}
	var text strings.Builder
	for _, name := range names {
		if value, there := m[name]; there {
			text.WriteString(name + "\n" + value + "\n")
		}
	}
	var signature []byte
	if version == "1" {
		sum := sha1.Sum([]byte(text.String()))
		signature = must.Get(rsa.SignPKCS1v15(nil, a.key, crypto.SHA1, sum[:]))(a.t)
	} else {
		sum := sha256.Sum256([]byte(text.String()))
		signature = must.Get(rsa.SignPKCS1v15(nil, a.key, crypto.SHA256, sum[:]))(a.t)
	}
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	return must.Get(json.Marshal(m))(a.t)
}

// genuineness tells whether a call is genuine, and why that is not known.
func genuineness(h hooks.Reporter, body []byte, now time.Time) (bool, error) {
	err := h.Genuine(&hooks.Call{Header: headers(), Body: body, Now: now})
	if errors.Is(err, hooks.ErrForged) {
		return false, nil
	}
	return err == nil, err
}

// known lets the certificate be fetched.
func (a *amazon) known() {
	a.t.Helper()
	if _, err := genuineness(a, a.message("2", nil), signedAt); !errors.Is(err, hooks.ErrLater) {
		a.t.Fatalf("before the certificate is known: %v", err)
	}
	servertest.Eventually(a.t, "the certificate", func() bool {
		ok, err := genuineness(a, a.message("2", nil), signedAt)
		return ok && err == nil
	})
}

// sesBounce is the documentation's example of a bounce with original headers.
const sesBounce = `{"notificationType":"Bounce","bounce":{"bounceType":"Permanent","reportingMTA":"dns; email.example.com","bouncedRecipients":[{"emailAddress":"jane@example.com","status":"5.1.1","action":"failed","diagnosticCode":"smtp; 550 5.1.1 <jane@example.com>... User"},{"emailAddress":"Joe <joe@example.com>"}],"bounceSubType":"General","timestamp":"2016-01-27T14:59:38.237Z","feedbackId":"00000138111222aa-33322211-cccc-cccc-cccc-ddddaaaa068a-000000","remoteMtaIp":"127.0.2.0"},"mail":{"timestamp":"2016-01-27T14:59:38.237Z","source":"john@example.com","messageId":"00000138111222aa-33322211-cccc-cccc-cccc-ddddaaaa0680-000000","destination":["jane@example.com"],"headersTruncated":false,"headers":[{"name":"Message-ID","value":"custom-message-ID"}]}}`

func TestSES_BothVersions_GenuineOnceFetched(t *testing.T) {
	t.Parallel()
	a := newAmazon(t)
	a.known()
	for name, c := range map[string]struct {
		body []byte
		want bool
	}{
		"version 1":         {a.message("1", nil), true},
		"version 2":         {a.message("2", nil), true},
		"without a subject": {a.message("2", func(m map[string]string) { delete(m, "Subject") }), true},
		"the other version": {bytes.Replace(a.message("1", nil), []byte(`"SignatureVersion":"1"`), []byte(`"SignatureVersion":"2"`), 1), false},
		"three days old":    {a.message("2", func(m map[string]string) { m["Timestamp"] = "2026-11-17T12:00:00.000Z" }), true},
		"older":             {a.message("2", func(m map[string]string) { m["Timestamp"] = "2026-11-17T11:59:59.999Z" }), false},
		"without a time":    {a.message("2", func(m map[string]string) { delete(m, "Timestamp") }), false},
		"version 3":         {bytes.Replace(a.message("2", nil), []byte(`"SignatureVersion":"2"`), []byte(`"SignatureVersion":"3"`), 1), false},
		"another text":      {bytes.Replace(a.message("2", nil), []byte("jane"), []byte("joan"), 1), false},
		"another type":      {bytes.Replace(a.message("2", nil), []byte(`"Type":"Notification"`), []byte(`"Type":"SubscriptionConfirmation"`), 1), false},
		"no JSON":           {[]byte("x"), false},
		"nothing":           {[]byte("{}"), false},
	} {
		if ok, err := genuineness(a, c.body, signedAt); ok != c.want || err != nil {
			t.Errorf("%s: genuine is %t, %v", name, ok, err)
		}
	}
	if ok, _ := genuineness(a, a.message("2", nil), signedAt.Add(2*time.Hour)); ok {
		t.Error("a certificate that has expired still counts")
	}
	if asked := a.requests(); !reflect.DeepEqual(asked, []string{"sns.eu-west-1.amazonaws.com" + certPath}) {
		t.Errorf("the certificate is fetched once: %v", asked)
	}
}

// signedByAmazon is a notification that Amazon SNS signed in 2023, and amazonsCertificate the one that it names. Its
// receiver has published it.
//
//go:embed testdata/sns.json
var signedByAmazon []byte

//go:embed testdata/sns.pem
var amazonsCertificate []byte

func TestSES_SignedByAmazon_Genuine(t *testing.T) {
	t.Parallel()
	a := newAmazon(t)
	a.files["/SimpleNotificationService-56e67fcb41f6fec09b0196692625d385.pem"] = func(w http.ResponseWriter) { w.Write(amazonsCertificate) }
	h := must.Get(hooks.NewSESOver(a.network, "arn:aws:sns:us-west-2:024726604032:AshtonTest"))(t)
	then := time.Date(2023, 1, 17, 22, 33, 15, 0, time.UTC)
	servertest.Eventually(t, "the notification", func() bool {
		ok, err := genuineness(h, signedByAmazon, then)
		return ok && err == nil
	})
	for _, change := range [][2]string{{"bar", "baz"}, {"14.087Z", "14.088Z"}, {"2023301a", "2023301b"}} {
		if ok, _ := genuineness(h, bytes.Replace(signedByAmazon, []byte(change[0]), []byte(change[1]), 1), then); ok {
			t.Errorf("%s in place of %s is as genuine", change[1], change[0])
		}
	}
	if ok, _ := genuineness(h, signedByAmazon, time.Date(2023, 6, 4, 0, 0, 0, 0, time.UTC)); ok {
		t.Error("its certificate ended in June 2023")
	}
}

// Any AWS account can publish validly signed messages, and anyone can name a certificate.
func TestSES_OtherTopicsAndCertificates_RefusedUnasked(t *testing.T) {
	t.Parallel()
	a := newAmazon(t)
	for _, change := range []string{
		"TopicArn arn:aws:sns:eu-west-1:999999999999:bounces", "TopicArn arn:aws:sns:us-east-1:123456789012:other",
		"SigningCertURL https://evil.example" + certPath, "SigningCertURL https://sns.eu-west-1.amazonaws.com.evil.example" + certPath,
		"SigningCertURL http://sns.eu-west-1.amazonaws.com" + certPath, "SigningCertURL https://x@sns.eu-west-1.amazonaws.com" + certPath,
		"SigningCertURL https://sns.eu-west-1.amazonaws.com:8443" + certPath, "SigningCertURL https://sns.us-east-1.amazonaws.com" + certPath,
		"SigningCertURL https://s3.eu-west-1.amazonaws.com" + certPath, "SigningCertURL " + certURL + "?x=1", "SigningCertURL " + certURL + "#x",
		"SigningCertURL https://sns.eu-west-1.amazonaws.com/?Action=x", "SigningCertURL ", "SigningCertURL https:sns.eu-west-1.amazonaws.com" + certPath,
	} {
		field, value, _ := strings.Cut(change, " ")
		if ok, err := genuineness(a, a.message("2", func(m map[string]string) { m[field] = value }), signedAt); ok || err != nil {
			t.Errorf("%s: genuine is %t, %v", change, ok, err)
		}
	}
	if asked := a.requests(); len(asked) != 0 {
		t.Errorf("asked %v", asked)
	}
	// A flood that names certificates which do not exist costs a few requests.
	for i := range 1000 {
		body := a.message2(fmt.Sprintf("https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-%032x.pem", i))
		if ok, err := genuineness(a, body, signedAt); ok || !errors.Is(err, hooks.ErrLater) {
			t.Fatalf("genuine is %t, %v", ok, err)
		}
	}
	if asked := a.requests(); len(asked) > 10 {
		t.Errorf("asked %d times", len(asked))
	}
}

// A certificate has 64 KiB at most.
func TestSES_HugeCertificate_NotRead(t *testing.T) {
	t.Parallel()
	a := newAmazon(t)
	whole := a.files[certPath]
	a.files[certPath] = func(w http.ResponseWriter) {
		_, _ = w.Write(bytes.Repeat([]byte("\n"), 64<<10))
		whole(w)
	}
	servertest.Eventually(t, "the second request", func() bool {
		ok, err := genuineness(a, a.message("2", nil), signedAt)
		if ok || !errors.Is(err, hooks.ErrLater) {
			t.Fatalf("genuine is %t, %v", ok, err)
		}
		return len(a.requests()) > 1 // the first was given up
	})
}

// A certificate that does not come is given up after five seconds, and fetched anew.
func TestSES_SilentCertificate_GivenUp(t *testing.T) {
	need.Long(t)
	t.Parallel()
	a := newAmazon(t)
	end, whole := make(chan struct{}), a.files[certPath]
	var first atomic.Bool
	t.Cleanup(func() { close(end) })
	a.files[certPath] = func(w http.ResponseWriter) {
		if first.CompareAndSwap(false, true) {
			<-end
		}
		whole(w)
	}
	a.known()
}

// message2 is a message that names a certificate, without the time to sign it.
func (a *amazon) message2(at string) []byte {
	return must.Get(json.Marshal(map[string]string{"Type": "Notification", "TopicArn": topic, "Message": "x", "Timestamp": "2026-11-20T12:00:00.000Z", "SignatureVersion": "2", "SigningCertURL": at, "Signature": "x"}))(a.t)
}

func TestSES_Confirmation_OnlyThere(t *testing.T) {
	t.Parallel()
	a := newAmazon(t)
	a.known()
	subscribe := func(at string) []byte {
		return a.message("2", func(m map[string]string) {
			m["Type"], m["Token"], m["SubscribeURL"], m["Message"] = "SubscriptionConfirmation", "2336412f37", at, "You have chosen to subscribe"
			delete(m, "Subject")
		})
	}
	read := func(at string) error {
		body := subscribe(at)
		if ok, err := genuineness(a, body, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)); !ok || err != nil {
			t.Fatalf("genuine is %t, %v", ok, err)
		}
		events, err := events(t, a, string(body))
		if len(events) != 0 {
			t.Errorf("events %v", events)
		}
		return err
	}
	must.OK(t, read("https://evil.example/?Action=ConfirmSubscription"))
	must.OK(t, read(confirm))
	if asked := a.requests(); !reflect.DeepEqual(asked[1:], []string{"sns.eu-west-1.amazonaws.com/"}) {
		t.Errorf("asked %v", asked)
	}
	a.mu.Lock()
	a.files["/"] = func(w http.ResponseWriter) {
		w.Header().Set("Location", "https://evil.example/")
		w.WriteHeader(302)
	}
	a.mu.Unlock()
	if err := read(confirm); !errors.Is(err, hooks.ErrLater) || strings.Contains(err.Error(), "2336412f37") {
		t.Errorf("a redirect: %v", err)
	}
	if asked := a.requests(); len(asked) != 3 {
		t.Errorf("a redirect is followed: %v", asked)
	}
}

// Only what SES and the sender have written counts: the recipient's server writes the rest of a bounce, and could name
// another recipient there, and a proof.
func TestSES_Read_KindAndRecipient(t *testing.T) {
	t.Parallel()
	a := newAmazon(t)
	const one, two = `,"mail":{"destination":["A <a@example.com>"],"headers":[]}}`, `,"mail":{"destination":["a@example.com","b@example.com"]}}`
	for message, want := range map[string]read{
		sesBounce: {"jane@example.com", bounce.Hard},
		`{"eventType":"Bounce","bounce":{"bounceType":"Transient","bouncedRecipients":[{"emailAddress":"a@example.com"}]}` + one:                           {"a@example.com", bounce.Soft},
		`{"notificationType":"Bounce","bounce":{"bounceType":"Permanent","bouncedRecipients":[{"emailAddress":"victim@example.com"}]}` + one:               {"a@example.com", bounce.Hard},
		`{"notificationType":"Bounce","bounce":{"bounceType":"Permanent","bouncedRecipients":[{"emailAddress":"b@example.com"}]}` + two:                    {"", bounce.Hard},
		`{"notificationType":"Complaint","complaint":{"complainedRecipients":[{"emailAddress":"a@example.com"}],"complaintFeedbackType":"abuse"}` + one:    {"a@example.com", bounce.Complaint},
		`{"notificationType":"Complaint","complaint":{"complainedRecipients":[{"emailAddress":"a@example.com"}],"complaintFeedbackType":"not-spam"}` + one: {"a@example.com", bounce.Other},
		`{"notificationType":"Complaint","complaint":{"complainedRecipients":[{"emailAddress":"a@example.com"},{"emailAddress":"b@example.com"}]}` + two:   {"", bounce.Complaint},
		`{"notificationType":"Delivery","delivery":{"recipients":["a@example.com"]}` + one:                                                                 {"a@example.com", bounce.Other},
		`{"eventType":"DeliveryDelay","deliveryDelay":{"delayedRecipients":[{"emailAddress":"a@example.com"}]}` + one:                                      {"a@example.com", bounce.Soft},
		`{"notificationType":"Bounce","bounce":{"bounceType":"Permanent","bouncedRecipients":[{"emailAddress":"a@example.com"}]}}`:                         {"", bounce.Hard},
		"Successfully validated SNS topic for Amazon SES event publishing.":                                                                                {"", bounce.Other},
	} {
		body := a.message("2", func(m map[string]string) { m["Message"] = message })
		all := must.Get(events(t, a, string(body)))(t)
		if len(all) != 1 || all[0].Address != want.Address || all[0].Kind != want.Kind {
			t.Errorf("%.100s\n got %v\nwant %v", message, all, want)
		}
		if _, mail, ok := strings.Cut(message, `,"mail":`); ok && all[0].Text != strings.TrimSuffix(mail, "}") {
			t.Errorf("its text is %s", all[0].Text)
		}
	}
}
