package hooks

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/mailgate/mailgate/suppression/bounce"
)

var postmarkKinds = map[string]bounce.Kind{
	"Bounce": bounce.Soft, "Bounce HardBounce": bounce.Hard, "Bounce BadEmailAddress": bounce.Hard, "SpamComplaint": bounce.Complaint,
}

// NewPostmark takes a user and a password, which Postmark sends.
func NewPostmark(setting string) (Reporter, error) {
	if user, password, _ := strings.Cut(setting, ":"); user == "" || len(password) < 16 {
		return nil, errors.New("must be user:password, with a password of at least 16 characters; make one: openssl rand -hex 16")
	}
	type event struct {
		RecordType, Type, Email string
	}
	read := each(func(e event) bounce.Event {
		return bounce.Event{Address: e.Email, Kind: kindOf(postmarkKinds, e.RecordType, e.Type)}
	})
	genuine := authorized("Basic " + base64.StdEncoding.EncodeToString([]byte(setting)))
	return &provider{name: "postmark", statuses: map[int]int{http.StatusUnauthorized: http.StatusForbidden}, genuine: genuine, read: read}, nil
}
