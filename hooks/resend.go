package hooks

import (
	"errors"

	"github.com/mailgate/mailgate/internal/webhook"
	"github.com/mailgate/mailgate/suppression/bounce"
)

var resendKinds = map[string]bounce.Kind{
	"email.bounced": bounce.Soft, "email.bounced Permanent": bounce.Hard, "email.complained": bounce.Complaint, "email.delivery_delayed": bounce.Soft,
}

// NewResend takes the signing secret. Resend does not say which of several recipients an event is about.
func NewResend(setting string) (Reporter, error) {
	secret, err := webhook.ParseSecret(setting)
	if err != nil {
		return nil, errors.New("must be the signing secret that Resend shows, whsec_ and base64")
	}
	genuine := func(c *Call) error {
		return genuineIf(webhook.Genuine([][]byte{secret}, c.Header("svix-id"), c.Header("svix-timestamp"), c.Header("svix-signature"), c.Body, c.Now))
	}
	type event struct {
		Type string `json:"type"`
		Data struct {
			To     []string `json:"to"`
			Bounce struct {
				Type string `json:"type"`
			} `json:"bounce"`
		} `json:"data"`
	}
	read := each(func(e event) bounce.Event {
		read := bounce.Event{Kind: kindOf(resendKinds, e.Type, e.Data.Bounce.Type)}
		if len(e.Data.To) == 1 {
			read.Address = bare(e.Data.To[0])
		}
		return read
	})
	return &provider{name: "resend", genuine: genuine, read: read}, nil
}
