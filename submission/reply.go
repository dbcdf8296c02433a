package submission

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/mailer/address"
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
	unknown     = &reply{500, "5.5.2", "unknown command"}
	tooLarge    = &reply{552, "5.3.4", "the email is too large"}
	eightBits   = &reply{554, "5.6.3", "no relay takes octets above 127; encode the text as quoted-printable or base64"}
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

// tells returns the reply of an outcome.
func tells(what *ledger.What) *reply {
	return &reply{what.SMTP.Code, what.SMTP.Enhanced, what.SMTP.Text}
}

// outcome returns what came of the email for a recipient, and the reply. What may have left is refused for good, as a
// queue would send it again otherwise.
func (s *session) outcome(to address.Address, err error) (ledger.Outcome, *reply) {
	if err == nil {
		said := s.mail.Receipt()
		return ledger.Outcome{What: ledger.Sent, Mailbox: to, Relay: said.Relay, Reply: &said.Reply},
			&reply{250, "2.0.0", "accepted by the relay [" + s.id + "]"}
	}
	o := ledger.Outcome{What: ledger.Of(err), Mailbox: to, Cause: err}
	answer := tells(o.What)
	e, _ := errors.AsType[*delivery.Error](err)
	said, _ := errors.AsType[*relay.Error](err)
	if said != nil && said.Reply != nil {
		o.Relay, o.Reply = said.Relay, said.Reply
	}
	switch text := words(said); {
	case errors.Is(err, relay.ErrTooBig):
		answer = tooLarge
	case errors.Is(err, relay.ErrEightBit):
		answer = eightBits
	case errors.Is(err, relay.ErrUnsendable):
		answer = malformed
	case said != nil && said.Final() && said.Reply.Enhanced == "":
		answer = &reply{550, "5.0.0", text}
	case said != nil && said.Final():
		answer = &reply{said.Reply.Code, said.Reply.Enhanced, text}
	case s.mail.Stays():
		answer = tells(ledger.Unknown)
	case o.What == ledger.Limited: // never with a code that calls the mailbox invalid: programs delete such addresses
		o.Report, o.Cause = s.report(&e.Result.Decision), nil
		answer.text = o.Report.SMTP(s.id)
		if slices.Contains(s.server.Defer, s.conn.key) {
			answer.code, answer.enhanced = 450, "4.7.1"
		}
	case o.What == ledger.Denied:
		o.Report.Rule, o.Cause = e.Rule, nil
		answer.text = "the rule " + e.Rule + " denies this recipient"
	case o.What == ledger.Suppressed:
		o.Reason = string(e.Suppression.Reason)
		answer.text = "this recipient is suppressed: " + o.Reason
		if e.Suppression.Until != 0 {
			answer.text += " until " + time.UnixMilli(int64(e.Suppression.Until)).UTC().Format(time.RFC3339)
		}
	case text != "":
		answer.text = text + "; nothing was sent"
	}
	if o.What == ledger.Rejected && said != nil && !said.To.IsZero() && said.To != to {
		o.What = ledger.Unavailable // as the relay refused another
	}
	return o, answer
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
