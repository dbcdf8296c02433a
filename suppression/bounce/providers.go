package bounce

import (
	"context"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mailgate/mailgate/internal/webhook"
)

// unmarshal reads what a provider sent, which may repeat the octets of a server that refused the email.
func unmarshal(text []byte, into any) bool {
	return json.Unmarshal(text, into, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) == nil
}

// each makes an event of each object of a body, which is one or an array of them. What is of an unknown form
// is an event of the kind Other.
func each[T any](event func(T) Event) func(context.Context, []byte) ([]Event, error) {
	return func(_ context.Context, body []byte) (events []Event, _ error) {
		all := []jsontext.Value{body}
		if array := []jsontext.Value(nil); unmarshal(body, &array) {
			all = array
		}
		for _, one := range all {
			var read T
			e := Event{Kind: Other}
			if unmarshal(one, &read) {
				e = event(read)
			}
			e.Text = string(one)
			events = append(events, e)
		}
		return events, nil
	}
}

// maxAge is how old a signature may be. Amazon SNS repeats a call for an hour, Mailgun for 8 and SendGrid for 24, with
// the first signature for all that they say.
const maxAge = 3 * 24 * time.Hour

func fresh(seconds string, now time.Time) bool {
	at, err := strconv.ParseInt(seconds, 10, 64)
	return err == nil && now.Sub(time.Unix(at, 0)).Abs() <= maxAge
}

// authorized proves the origin by a header Authorization, in a time that says nothing about it.
func authorized(want string) func(func(string) string, []byte, time.Time) (bool, error) {
	wanted := sha256.Sum256([]byte(want))
	return func(header func(string) string, _ []byte, _ time.Time) (bool, error) {
		shown := sha256.Sum256([]byte(header("Authorization")))
		return hmac.Equal(shown[:], wanted[:]), nil
	}
}

// openSendGrid takes the verification key, as SendGrid shows it.
func openSendGrid(setting string, _ *http.Client) (Source, error) {
	der, _ := base64.StdEncoding.DecodeString(setting)
	parsed, _ := x509.ParsePKIXPublicKey(der)
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return Source{}, errors.New("must be the verification key that SendGrid shows, which begins with MFkw")
	}
	kinds := map[string]Kind{"bounce": Hard, "bounce blocked": Soft, "bounce expired": Soft, "deferred": Soft, "spamreport": Complaint}
	type event struct {
		Email string `json:"email"`
		Event string `json:"event"`
		Type  string `json:"type"`
	}
	const header = "X-Twilio-Email-Event-Webhook-"
	return Source{
		Genuine: func(value func(string) string, body []byte, now time.Time) (bool, error) {
			signature, _ := base64.StdEncoding.DecodeString(value(header + "Signature"))
			sum := sha256.New()
			sum.Write([]byte(value(header + "Timestamp")))
			sum.Write(body)
			return fresh(value(header+"Timestamp"), now) && ecdsa.VerifyASN1(key, sum.Sum(nil), signature), nil
		},
		Read: each(func(e event) Event { return Event{Address: e.Email, Kind: kindOf(kinds, e.Event, e.Type)} }),
	}, nil
}

// openMailgun takes the signing key of HTTP webhooks. It signs a token, and not the event.
func openMailgun(setting string, _ *http.Client) (Source, error) {
	kinds := map[string]Kind{"failed": Soft, "failed permanent bounce": Hard, "failed permanent suppress-bounce": Hard, "complained": Complaint}
	type call struct {
		Signature struct {
			Timestamp string `json:"timestamp"`
			Token     string `json:"token"`
			Signature string `json:"signature"`
		} `json:"signature"`
	}
	type event struct {
		call
		Data struct {
			Event     string `json:"event"`
			Severity  string `json:"severity"`
			Reason    string `json:"reason"`
			Recipient string `json:"recipient"`
		} `json:"event-data"`
	}
	return Source{
		Genuine: func(_ func(string) string, body []byte, now time.Time) (bool, error) {
			var c call
			if !unmarshal(body, &c) || !fresh(c.Signature.Timestamp, now) {
				return false, nil
			}
			mac := hmac.New(sha256.New, []byte(setting))
			mac.Write([]byte(c.Signature.Timestamp + c.Signature.Token)) // into a hash, which does not fail
			shown, _ := hex.DecodeString(c.Signature.Signature)
			return hmac.Equal(shown, mac.Sum(nil)), nil
		},
		Read: each(func(e event) Event {
			token := e.Signature.Timestamp + e.Signature.Token // no separator is signed, so that each may have a part of the other
			return Event{Address: e.Data.Recipient, Kind: kindOf(kinds, e.Data.Event, e.Data.Severity, e.Data.Reason), Token: token}
		}),
	}, nil
}

// openPostmark takes a user and a password, which Postmark sends.
func openPostmark(setting string, _ *http.Client) (Source, error) {
	if user, password, _ := strings.Cut(setting, ":"); user == "" || len(password) < 16 {
		return Source{}, errors.New("must be user:password, with a password of at least 16 characters; make one: openssl rand -hex 16")
	}
	kinds := map[string]Kind{"Bounce": Soft, "Bounce HardBounce": Hard, "Bounce BadEmailAddress": Hard, "SpamComplaint": Complaint}
	type event struct {
		RecordType, Type, Email string
	}
	return Source{
		Genuine: authorized("Basic " + base64.StdEncoding.EncodeToString([]byte(setting))),
		Read:    each(func(e event) Event { return Event{Address: e.Email, Kind: kindOf(kinds, e.RecordType, e.Type)} }),
	}, nil
}

// openBrevo takes the token that Brevo sends.
func openBrevo(setting string, _ *http.Client) (Source, error) {
	kinds := map[string]Kind{"hard_bounce": Hard, "invalid_email": Hard, "soft_bounce": Soft, "deferred": Soft, "blocked": Soft, "error": Soft, "spam": Complaint}
	type event struct {
		Event string `json:"event"`
		Email string `json:"email"`
	}
	return Source{
		Genuine: authorized("Bearer " + setting),
		Read:    each(func(e event) Event { return Event{Address: e.Email, Kind: kindOf(kinds, e.Event)} }),
	}, nil
}

// openResend takes the signing secret. Resend does not say which of several recipients an event is about.
func openResend(setting string, _ *http.Client) (Source, error) {
	secret, err := webhook.ParseSecret(setting)
	if err != nil {
		return Source{}, errors.New("must be the signing secret that Resend shows, whsec_ and base64")
	}
	kinds := map[string]Kind{"email.bounced": Soft, "email.bounced Permanent": Hard, "email.complained": Complaint, "email.delivery_delayed": Soft}
	type event struct {
		Type string `json:"type"`
		Data struct {
			To     []string `json:"to"`
			Bounce struct {
				Type string `json:"type"`
			} `json:"bounce"`
		} `json:"data"`
	}
	return Source{
		Genuine: func(header func(string) string, body []byte, now time.Time) (bool, error) {
			return webhook.Genuine([][]byte{secret}, header("svix-id"), header("svix-timestamp"), header("svix-signature"), body, now), nil
		},
		Read: each(func(e event) Event {
			read := Event{Kind: kindOf(kinds, e.Type, e.Data.Bounce.Type)}
			if len(e.Data.To) == 1 {
				read.Address = bare(e.Data.To[0])
			}
			return read
		}),
	}, nil
}

// bare returns an address without a name before it.
func bare(text string) string {
	return strings.TrimSuffix(text[strings.LastIndexByte(text, '<')+1:], ">")
}
