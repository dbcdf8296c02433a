// Package hooks reads the calls of auth systems that have a URL called in place of sending an email: the
// Send Email Hook of Supabase Auth and the HTTP email connector of Logto.
//
// A hook says whether a call is genuine, which emails it asks for, and what to answer in that system's
// terms. It decides and sends nothing: package api, whose listener brings the calls, has package delivery
// do that as for POST /send-code. Nothing in a call chooses a host, a template's file or a header.
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

// letter is what a call says of one email.
type letter struct {
	field, to        string // the field with the address, for errors
	template, locale string
	codeField, code  string
	visitor          string // an IP address
	linked           bool   // it has a link in place of a code
	data             map[string]string
}

// email makes the send of a letter. An error names a field and holds no value of it.
func (l letter) email(identity address.Identity) (delivery.Send, error) {
	to, err := address.Parse(l.to, identity)
	if err != nil {
		return delivery.Send{}, fmt.Errorf("%s: %w", l.field, err)
	}
	if l.code == "" && !l.linked { // one would be issued that the system does not know
		return delivery.Send{}, fmt.Errorf("%s is missing", l.codeField)
	}
	client, _ := netip.ParseAddr(l.visitor) // an unknown visitor is not counted
	return delivery.Send{
		Linked: l.linked, Traits: rules.Send{Client: client},
		Mail: message.Request{To: to, Code: l.code, Template: l.template, Locale: l.locale, Data: l.data},
	}, nil
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
	const most = 64
	return fmt.Errorf("%s: no email of the kind %.*q is known", field, most, kind)
}

// same compares secrets in a time that says nothing about them.
func same(one, other string) bool {
	a, b := sha256.Sum256([]byte(one)), sha256.Sum256([]byte(other))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
