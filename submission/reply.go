package submission

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/suppression"
)

func reply(code, class, subject, detail int, text string) *smtp.SMTPError {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{class, subject, detail}, Message: text}
}

// What is said before a recipient is charged or a text is handed over.
var (
	noTLS         = reply(530, 5, 7, 0, "say STARTTLS first")
	noKey         = reply(530, 5, 7, 0, "sign in first: the user is the name of an API key, the password its secret")
	wrongKey      = reply(535, 5, 7, 8, "the user must be the name of an API key, and the password its secret")
	wrongKeys     = reply(421, 4, 7, 0, "too many wrong passwords; the connection is closed")
	tooManyOfKey  = reply(421, 4, 3, 2, "too many connections with this key")
	openAlready   = reply(503, 5, 5, 1, "an email is open already; RSET ends it")
	nullSender    = reply(553, 5, 7, 1, "the sender is empty; bounces are not accepted")
	senderRefused = reply(553, 5, 7, 1, "this sender is not allowed; MAILGATE_SUBMISSION_SENDERS lists those that are")
	fromRefused   = reply(550, 5, 7, 1, "the address in From is not allowed; MAILGATE_SUBMISSION_SENDERS lists those that are")
	notOneFrom    = reply(553, 5, 7, 1, "the text needs exactly one From with exactly one address")
	tooLarge      = reply(552, 5, 3, 4, "the email is too large")
	tooManyTexts  = reply(452, 4, 3, 1, "too many emails are on their way; try again")
	malformed     = reply(554, 5, 6, 0, "the text has a NUL, a CR or LF alone, a line of more than 998 octets, or a broken header")
	notSevenBit   = reply(554, 5, 6, 3, "no relay takes octets above 127; encode the text as quoted-printable or base64")
	notConfirmed  = reply(554, 5, 4, 0, "the relay did not confirm the email; it may arrive, and must not be sent again")
	noRecords     = reply(451, 4, 3, 0, "the records are unavailable; nothing was sent")
	tooManyWait   = reply(451, 4, 3, 2, "too many emails are waiting; nothing was sent")
	inProgress    = reply(451, 4, 3, 2, "an earlier email to this mailbox is still being sent")
	alone         = reply(451, 4, 5, 3, "the reply to the last email to this mailbox may be lost; send to it alone")
	tooSlow       = reply(421, 4, 4, 2, "too slow; the connection is closed")
)

// invalidRecipient refuses an address with the reason.
func invalidRecipient(err error) *smtp.SMTPError {
	if reason, ok := errors.AsType[address.Reason](err); ok && reason == "local-not-ascii" {
		return reply(553, 5, 6, 7, err.Error())
	}
	return reply(553, 5, 1, 3, err.Error())
}

// limited refuses a recipient whose limit is reached, for good unless the key's emails may come late. The
// code is never one that calls the mailbox invalid, since programs delete such addresses.
func (s *session) limited(r *report.Report) *smtp.SMTPError {
	if slices.Contains(s.server.Defer, s.key) {
		return reply(450, 4, 7, 1, r.SMTP(s.id))
	}
	return reply(550, 5, 7, 1, r.SMTP(s.id))
}

// failed answers an email that was not accepted. What may have left is refused for good, as a queue would
// send it again otherwise.
func failed(err error, stays bool) *smtp.SMTPError {
	said, _ := errors.AsType[*relay.Error](err)
	e, _ := errors.AsType[*delivery.Error](err)
	switch {
	case errors.Is(err, relay.ErrTooBig):
		return tooLarge
	case errors.Is(err, relay.ErrEightBit):
		return notSevenBit
	case errors.Is(err, relay.ErrUnsendable):
		return malformed
	case said != nil && said.Final():
		return rejected(said)
	case stays:
		return notConfirmed
	case e != nil && e.Kind == delivery.Suppressed:
		return suppressed(e.Suppression)
	case e != nil && e.Kind == delivery.Denied:
		return reply(550, 5, 7, 1, "the rule "+e.Rule+" denies this recipient")
	case e == nil, e.Kind == delivery.Storage: // of the newest emails, or of the limits
		return noRecords
	case e.Kind == delivery.Busy:
		return tooManyWait
	case e.Kind == delivery.Unavailable, e.Kind == delivery.Deferred:
		return reply(451, 4, 4, 1, cmp.Or(words(said), "the relay is unavailable")+"; nothing was sent")
	}
	return reply(451, 4, 3, 0, "internal error; nothing was sent")
}

// suppressed refuses a recipient who is to get no email.
func suppressed(why suppression.Entry) *smtp.SMTPError {
	text := "this recipient is suppressed: " + string(why.Reason)
	if why.Until != 0 {
		text += " until " + time.UnixMilli(why.Until).UTC().Format(time.RFC3339)
	}
	return reply(550, 5, 7, 1, text)
}

// rejected passes a relay's refusal on.
func rejected(said *relay.Error) *smtp.SMTPError {
	code := smtp.EnhancedCode{}
	if n, err := fmt.Sscanf(said.Reply.Enhanced, "%d.%d.%d", &code[0], &code[1], &code[2]); n < 3 || err != nil {
		return reply(550, 5, 0, 0, words(said))
	}
	return &smtp.SMTPError{Code: said.Reply.Code, EnhancedCode: code, Message: words(said)}
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
