package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/mailgate/mailgate/suppression/bounce"
)

var mailgunKinds = map[string]bounce.Kind{
	"failed": bounce.Soft, "failed permanent bounce": bounce.Hard, "failed permanent suppress-bounce": bounce.Hard, "complained": bounce.Complaint,
}

// mailgunCall has one event. Mailgun signs a token, and not the event.
type mailgunCall struct {
	Signature struct {
		Timestamp string `json:"timestamp"`
		Token     string `json:"token"`
		Signature string `json:"signature"`
	} `json:"signature"`
	Data struct {
		Event     string `json:"event"`
		Severity  string `json:"severity"`
		Reason    string `json:"reason"`
		Recipient string `json:"recipient"`
	} `json:"event-data"`
}

// NewMailgun takes the signing key of HTTP webhooks.
func NewMailgun(setting string) (Reporter, error) {
	genuine := func(c *Call) error {
		var call mailgunCall
		if !unmarshal(c.Body, &call) {
			return ErrForged
		}
		c.parsed = &call
		mac := hmac.New(sha256.New, []byte(setting))
		mac.Write([]byte(call.Signature.Timestamp + call.Signature.Token)) // into a hash, which does not fail
		signature, _ := hex.DecodeString(call.Signature.Signature)
		return genuineIf(hmac.Equal(signature, mac.Sum(nil)) && fresh(call.Signature.Timestamp, c.Now))
	}
	read := func(c *Call) []bounce.Event {
		call := c.parsed.(*mailgunCall)
		return []bounce.Event{{
			Address: call.Data.Recipient, Kind: kindOf(mailgunKinds, call.Data.Event, call.Data.Severity, call.Data.Reason), Text: string(c.Body),
			Token: call.Signature.Timestamp + call.Signature.Token, // no separator is signed, so that each may have a part of the other
		}}
	}
	return &provider{name: "mailgun", statuses: map[int]int{http.StatusUnauthorized: http.StatusNotAcceptable}, genuine: genuine, read: read}, nil
}
