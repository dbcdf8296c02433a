package hooks

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle/rules"
)

// email begins an email to an address in a field, requested by the visitor at ip. An error holds no value.
func email(identity address.Identity, field, to, ip string) (delivery.Send, error) {
	parsed, err := address.Parse(to, identity)
	if err != nil {
		return delivery.Send{}, fmt.Errorf("%s: %w", field, err)
	}
	client, _ := netip.ParseAddr(ip) // an unknown visitor is not counted
	return delivery.Send{Traits: rules.Send{Client: client}, Mail: message.Request{To: parsed}}, nil
}

// read reads a call. Unknown members are ignored, since a system adds them with time. An error says where the
// call is wrong, and holds no value.
func read(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	place := "the end"
	if e, ok := errors.AsType[*json.SemanticError](err); ok { // of a member that is known, or of the whole
		place = cmp.Or(string(e.JSONPointer), "the start")
	} else if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok { // of any, whose name may be a value
		place = fmt.Sprintf("byte %d", e.ByteOffset)
	}
	return errors.New("the call is not the JSON that this hook takes: see " + place)
}

// unknownKind refuses a kind of email for which there is no template. The kind is quoted and cut.
func unknownKind(field, kind string) error {
	return fmt.Errorf("%s: no email of the kind %.64q is known", field, kind)
}

// NotOfURL reports whether a character cannot be in a URL, so that an email program may end a link at it.
func NotOfURL(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }
