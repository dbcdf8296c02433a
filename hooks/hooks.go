// Package hooks reads the calls of auth systems that have a URL called in place of sending an email: the
// Send Email Hook of Supabase Auth and the HTTP email connector of Logto.
//
// A hook says whether a call is genuine, which emails it asks for, and what to answer in that system's
// terms. Package api, whose listener brings the calls, has package delivery send them as for
// POST /send-code. Nothing in a call chooses a host, a template's file or a header.
package hooks

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"

	"github.com/go-json-experiment/json"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle/rules"
)

// email makes an email to an address in a field, requested by the visitor at ip. An error holds no value.
func email(identity address.Identity, field, to, template, code, ip string) (delivery.Send, error) {
	parsed, err := address.Parse(to, identity)
	if err != nil {
		return delivery.Send{}, fmt.Errorf("%s: %w", field, err)
	}
	client, _ := netip.ParseAddr(ip) // an unknown visitor is not counted
	return delivery.Send{Traits: rules.Send{Client: client}, Mail: message.Request{To: parsed, Template: template, Code: code}}, nil
}

// read reads a call. Unknown members are ignored, since a system adds them with time.
func read(body []byte, into any) error {
	if json.Unmarshal(body, into) != nil { // whose error may quote the call
		return errors.New("the call is not the JSON that this hook takes")
	}
	return nil
}

// unknownKind refuses a kind of email for which there is no template. The kind is quoted and cut.
func unknownKind(field, kind string) error {
	return fmt.Errorf("%s: no email of the kind %.64q is known", field, kind)
}

// same compares secrets in a time that says nothing about them.
func same(one, other string) bool {
	a, b := sha256.Sum256([]byte(one)), sha256.Sum256([]byte(other))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
