package hooks

import (
	"net/http"

	"github.com/mailgate/mailgate/suppression/bounce"
)

var brevoKinds = map[string]bounce.Kind{
	"hard_bounce": bounce.Hard, "invalid_email": bounce.Hard, "spam": bounce.Complaint,
	"soft_bounce": bounce.Soft, "deferred": bounce.Soft, "blocked": bounce.Soft, "error": bounce.Soft,
}

// NewBrevo takes the token that Brevo sends. Brevo gives up after any 5xx.
func NewBrevo(setting string) (Reporter, error) {
	type event struct {
		Event string `json:"event"`
		Email string `json:"email"`
	}
	read := each(func(e event) bounce.Event { return bounce.Event{Address: e.Email, Kind: kindOf(brevoKinds, e.Event)} })
	return &provider{name: "brevo", statuses: map[int]int{http.StatusServiceUnavailable: http.StatusTooManyRequests}, genuine: authorized("Bearer " + setting), read: read}, nil
}
