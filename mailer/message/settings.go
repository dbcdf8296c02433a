package message

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/mailer/proof"
)

// The bounds of a template's own header fields.
const (
	maxHeaders     = 16
	maxHeaderValue = 900 // octets: a line has 998
)

// ours are the header fields that a template cannot have, in lower case: those that are written here or by relays, and
// those that name recipients.
var ours = []string{"from", "sender", "reply-to", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version", "auto-submitted",
	"x-auto-response-suppress", "return-path", "received", "delivered-to", "dkim-signature", "authentication-results"}

// prepare checks the senders and header fields. With an error it names the part that is wrong.
func (s *settings) prepare() (part string, err error) {
	if s.From != "" {
		if s.from, err = ParseSender(s.From); err != nil {
			return "from", err
		}
	}
	if s.ReplyTo != "" {
		to, err := ParseSender(s.ReplyTo)
		if err == nil {
			s.lines, err = appendHeader(s.lines, "Reply-To", to.header())
		}
		if err != nil {
			return "reply_to", err
		}
	}
	if len(s.Headers) > maxHeaders {
		return "headers", fmt.Errorf("there can be %d, not %d", maxHeaders, len(s.Headers))
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value, lower := s.Headers[name], strings.ToLower(name)
		switch {
		case name == "" || len(name) > 64 || !isWord(name, "-"):
			return "headers", errors.New("a name is up to 64 letters, digits and -")
		case slices.Contains(ours, lower) || strings.HasPrefix(lower, "content-") || strings.HasPrefix(lower, "resent-") || proof.Has(lower):
			return "headers", fmt.Errorf("%s is written by mailgate", name)
		case seen[lower]:
			return "headers", fmt.Errorf("%s is given twice", name)
		case len(value) > maxHeaderValue || !isPlain(value) || strings.Contains(value, "{{") || strings.TrimSpace(value) != value:
			return "headers", fmt.Errorf("the value of %s must be up to %d printable ASCII characters, without =? and {{", name, maxHeaderValue)
		}
		seen[lower] = true
		if s.lines, err = appendHeader(s.lines, name, value); err != nil {
			return "headers", err
		}
	}
	return "", nil
}
