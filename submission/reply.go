package submission

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/mailer/relay"
)

// reply is what the door answers.
type reply struct {
	code     int
	enhanced string // "" where RFC 2034 has none
	text     string
}

// ends reports whether the connection ends behind the reply.
func (r *reply) ends() bool { return r.code == 221 || r.code == 421 || r == lineTooLong }

var (
	done        = &reply{250, "2.0.0", "OK"}
	readyForTLS = &reply{220, "2.0.0", "ready to start TLS"}
	badSyntax   = &reply{501, "5.5.2", "the address cannot be read"}
	badArgument = &reply{501, "5.5.4", "an argument is missing, wrong or too many"}
	notOffered  = &reply{502, "5.5.1", "this is not offered"}
	wrongOrder  = &reply{503, "5.5.1", "not now: AUTH, MAIL, RCPT and DATA come one after the other, and RSET ends an email"}
	noParameter = &reply{555, "5.5.4", "this parameter is not offered"}
	notOneFrom  = &reply{553, "5.7.1", "the text needs exactly one From with exactly one address"}
	tooLarge    = &reply{552, "5.3.4", "the email is too large"}
	malformed   = &reply{554, "5.6.0", "the text has a NUL, a CR or LF alone, a line of more than 998 octets, or a broken header"}
)

// What ends a connection.
var (
	lineTooLong = &reply{500, "5.5.2", "the line is too long; the connection is closed"}
	stopping    = &reply{421, "4.3.2", "the server shuts down"}
	crowded     = &reply{421, "4.3.2", "too many connections"}
	tooSlow     = &reply{421, "4.4.2", "too slow; the connection is closed"}
	gone        = &reply{421, "4.4.2", "the connection is lost"}
)

// failed answers an email that was not accepted. What may have left is refused for good, as a queue would
// send it again otherwise.
func failed(err error, stays bool) *reply {
	said, _ := errors.AsType[*relay.Error](err)
	e, _ := errors.AsType[*delivery.Error](err)
	switch {
	case errors.Is(err, relay.ErrTooBig):
		return tooLarge
	case errors.Is(err, relay.ErrEightBit):
		return &reply{554, "5.6.3", "no relay takes octets above 127; encode the text as quoted-printable or base64"}
	case errors.Is(err, relay.ErrUnsendable):
		return malformed
	case said != nil && said.Final() && said.Reply.Enhanced == "":
		return &reply{550, "5.0.0", words(said)}
	case said != nil && said.Final():
		return &reply{said.Reply.Code, said.Reply.Enhanced, words(said)}
	case stays:
		return replyOf(ledger.Unknown, "")
	case e == nil:
		return replyOf(ledger.Storage, "")
	}
	what, text := ledger.Of(err), ""
	switch what {
	case ledger.Suppressed:
		text = "this recipient is suppressed: " + string(e.Suppression.Reason)
		if e.Suppression.Until != 0 {
			text += " until " + time.UnixMilli(e.Suppression.Until).UTC().Format(time.RFC3339)
		}
	case ledger.Denied:
		text = "the rule " + e.Rule + " denies this recipient"
	case ledger.Unavailable, ledger.Deferred:
		if text = words(said); text != "" {
			text += "; nothing was sent"
		}
	}
	return replyOf(what, text)
}

// replyOf returns the reply of an outcome, with a text that says more, if there is one.
func replyOf(what *ledger.What, text string) *reply {
	return &reply{what.SMTP.Code, what.SMTP.Enhanced, cmp.Or(text, what.SMTP.Text)}
}

// maxWords keeps a reply within the 512 octets of RFC 5321.
const maxWords = 400

// words are what the relay said of the email, and of which recipient. What it said before, such as to a
// password, is not for callers.
func words(said *relay.Error) string {
	if said == nil || said.OfEmail() == nil {
		return ""
	}
	text := said.Reply.Message
	if !said.To.IsZero() {
		text = "<" + said.To.String() + ">: " + text
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), maxWords)]
}
