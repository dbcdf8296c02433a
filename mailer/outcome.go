package mailer

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Outcome says what became of a mail that was not accepted, and with it who
// pays: a rejected or unknown mail stays charged, an unavailable one is given
// back.
type Outcome int

const (
	// Rejected: the relay refused this mail or its recipient for good (5xx).
	// Refusing us, as who may not use it or has used it up, is none.
	Rejected Outcome = iota + 1
	// Unavailable: the mail certainly never left. Every relay was down, slow,
	// misconfigured, said 4xx, or refused us or our sender.
	Unavailable
	// Unknown: the last octet of the mail may have gone out and no answer
	// came. It may have been delivered; sending it again could deliver it twice.
	Unknown
)

// String is the outcome as it appears in logs and metrics.
func (o Outcome) String() string {
	switch o {
	case Rejected:
		return "rejected"
	case Unavailable:
		return "unavailable"
	case Unknown:
		return "unknown"
	}
	return "outcome " + strconv.Itoa(int(o))
}

// Step is the part of the SMTP conversation in which something went wrong.
type Step string

// The steps, in the order in which they come.
const (
	StepConnect  Step = "connect"
	StepTLS      Step = "TLS"
	StepBanner   Step = "banner"
	StepEHLO     Step = "EHLO"
	StepSTARTTLS Step = "STARTTLS"
	StepAUTH     Step = "AUTH"
	StepRSET     Step = "RSET"
	StepMAIL     Step = "MAIL"
	StepRCPT     Step = "RCPT"
	StepDATA     Step = "DATA"
	StepContent  Step = "content"   // while the mail itself was being sent
	StepFinalDot Step = "final dot" // after the mail's last octet went out
)

// Reply is a relay's answer. Message is the relay's own text and often repeats
// the recipient's address: show it to whoever knows the address, never log it.
// String and slog leave it out.
type Reply struct {
	Code     int    // 200 to 599
	Enhanced string // "5.1.1", or empty
	Message  string
}

// String is the code and the enhanced code, without the text.
func (r Reply) String() string {
	if r.Enhanced == "" {
		return strconv.Itoa(r.Code)
	}
	return strconv.Itoa(r.Code) + " " + r.Enhanced
}

// aboutUs says whether a refusal is a matter of policy (RFC 3463's 5.7.x), as
// is "554 5.7.1 Relay access denied", of the relay's own state (5.3.x), of a
// quota used up ("550 5.4.5 Daily user sending limit exceeded"), or of the
// sender ("550 5.1.8 Access denied, bad outbound sender"), which many a relay
// says at the recipient: any mail of ours would be refused. What is wrong with
// a recipient has codes of its own. But Microsoft 365 says 5.2.252, or 5.2.0, of
// a sender that its user may not send as. Others go by words.
func (r Reply) aboutUs() bool {
	if r.aboutCommand() {
		return true
	}
	switch r.Enhanced {
	case "5.4.5", "5.1.7", "5.1.8", "5.2.252":
		return true
	case "5.2.0":
		return strings.HasPrefix(r.Message, "STOREDRV.Submission.Exception:")
	}
	return strings.HasPrefix(r.Enhanced, "5.7.") || strings.HasPrefix(r.Enhanced, "5.3.") || r.saysAboutUs()
}

// aboutCommand says whether what is refused is the command, whatever the recipient: it
// needs a login (530), comes out of order (503, which some servers say for 530, too),
// or the relay does not do it (502, 504, which Postfix says of a HELO name, too).
func (r Reply) aboutCommand() bool {
	switch r.Code {
	case 502, 503, 504, 530:
		return true
	}
	return false
}

// wordsAboutUs are those of relays in wide use that have no code to say it, in lower
// case. Each has a space, as no address has that is repeated to us.
var wordsAboutUs = []string{
	"relay not permitted", "not permitted to relay", "sender verify failed", // Exim
	"sender address rejected", "helo command rejected", // Postfix, under 5.1.0 and 5.5.2
	"relaying denied", "relaying disallowed", // many; Zoho, of a sender that is not its user
	"email address is not verified", "sending paused for this account", // Amazon SES
	"from address does not match a verified sender", // SendGrid
}

func (r Reply) saysAboutUs() bool {
	text := strings.ToLower(r.Message)
	return slices.ContainsFunc(wordsAboutUs, func(words string) bool { return strings.Contains(text, words) })
}

// aboutSession says whether a 4xx may be about the connection: about too much on it
// (452, 4.5.3, and 4.4.5, as Stalwart says) or the relay's own state (4.3.x).
func (r Reply) aboutSession() bool {
	return r.Code == 452 || r.Enhanced == "4.4.5" || r.Enhanced == "4.5.3" || strings.HasPrefix(r.Enhanced, "4.3.")
}

// refused is the outcome of a 5xx to a recipient or a mail.
func (r Reply) refused() Outcome {
	if r.aboutUs() {
		return Unavailable
	}
	return Rejected
}

// LogValue keeps the relay's text out of logs.
func (r Reply) LogValue() slog.Value { return slog.StringValue(r.String()) }

// SendError is why a mail was not accepted. Its text names the relay and the
// step, never an address or a secret.
type SendError struct {
	Outcome Outcome
	Relay   string // host:port; empty when no relay was asked
	Step    Step   // empty when no relay was asked
	// Reply is the relay's answer, where it gave one.
	Reply *Reply
	// Deferred: the mail never left, and of the relays at least one was asked, and
	// each that was came as far as the recipient, and then said 4xx, what is about
	// us, or nothing. Whoever may name a recipient can bring that about, with a
	// domain that is not there or a mailbox that takes no mail of strangers, so it
	// need be no trouble of a relay's.
	Deferred bool
	// RetryAfter is when trying again may help, where that is known.
	RetryAfter time.Duration
	// Err is the cause, where there is more to say than the reply.
	Err error
}

// Error implements error.
func (e *SendError) Error() string {
	text := "mail " + e.Outcome.String()
	if e.Relay != "" {
		text = "relay " + e.Relay + ": " + text
	}
	if e.Step != "" {
		text += " at " + string(e.Step)
	}
	if e.Reply != nil {
		text += ": " + e.Reply.String()
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

var (
	// ErrBusy is matched by the error of a send that was turned away because
	// too many are waiting: the mail never left. The error is a *BusyError.
	ErrBusy = errors.New("too many sends are waiting for the relay")
	// ErrUnsendable is matched when a Message cannot go over the wire as it
	// is: a bare CR or LF, an envelope address that is none. The composer is
	// at fault, not the relay; nothing was sent.
	ErrUnsendable = errors.New("the mail is not fit to be sent")
	// ErrClosed is the cause when a mail comes after Close.
	ErrClosed = errors.New("the relay connections are closed")
	// errHeldBack is the cause when Message.Leaving would not let a mail leave.
	errHeldBack = errors.New("it was not let go")
)

// BusyError is an ErrBusy that says when to come again.
type BusyError struct {
	RetryAfter time.Duration
}

// Error implements error.
func (e *BusyError) Error() string { return ErrBusy.Error() }

// Is matches ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

func unsendable(why string) error { return fmt.Errorf("%w: %s", ErrUnsendable, why) }
