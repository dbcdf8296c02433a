package hooks

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"

	"github.com/mailgate/mailgate/suppression/bounce"
)

var sendGridKinds = map[string]bounce.Kind{
	"bounce": bounce.Hard, "bounce blocked": bounce.Soft, "bounce expired": bounce.Soft, "deferred": bounce.Soft, "spamreport": bounce.Complaint,
}

// NewSendGrid takes the verification key, as SendGrid shows it.
func NewSendGrid(setting string) (Reporter, error) {
	der, _ := base64.StdEncoding.DecodeString(setting)
	parsed, _ := x509.ParsePKIXPublicKey(der)
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return nil, errors.New("must be the verification key that SendGrid shows, which begins with MFkw")
	}
	const header = "X-Twilio-Email-Event-Webhook-"
	genuine := func(c *Call) error {
		timestamp := c.Header(header + "Timestamp")
		signature, err := base64.StdEncoding.DecodeString(c.Header(header + "Signature"))
		if err != nil || !fresh(timestamp, c.Now) {
			return ErrForged // without a hash of the body
		}
		sum := sha256.New()
		sum.Write([]byte(timestamp))
		sum.Write(c.Body)
		return genuineIf(ecdsa.VerifyASN1(key, sum.Sum(nil), signature))
	}
	type event struct {
		Email string `json:"email"`
		Event string `json:"event"`
		Type  string `json:"type"`
	}
	read := each(func(e event) bounce.Event {
		return bounce.Event{Address: e.Email, Kind: kindOf(sendGridKinds, e.Event, e.Type)}
	})
	return &provider{name: "sendgrid", genuine: genuine, read: read}, nil
}
