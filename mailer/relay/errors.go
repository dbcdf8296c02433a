package relay

import (
	"errors"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/mailer/address"
)

// Outcome says what became of an email that was not accepted, and with it whether the send
// stays charged: rejected and unknown stay, the others are refunded. It is the word in logs
// and metrics.
type Outcome string

const (
	// Rejected: the relay refused this email or its recipient for good (5xx). A refusal of this
	// server, its sender or its quota is Unavailable.
	Rejected Outcome = "rejected"
	// Unavailable: the email certainly never left. Every relay was down, slow or misconfigured,
	// said 4xx, or refused this server or its sender.
	Unavailable Outcome = "unavailable"
	// Deferred: the email certainly never left, and each relay that was asked came as far as the
	// recipient. A visitor can cause that with a domain that does not exist, so it says nothing
	// against a relay.
	Deferred Outcome = "deferred"
	// Unknown: the last octet of the email may have gone out and no answer came. The email
	// may have been delivered, so sending it again could deliver it twice.
	Unknown Outcome = "unknown"
	// Busy: too many sends are waiting, or too little time was left. The email certainly
	// never left.
	Busy Outcome = "busy"
)

// Step is the part of the SMTP conversation in which an email failed.
type Step string

// The steps in order.
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
	StepContent  Step = "content"   // while the text was being sent
	StepFinalDot Step = "final dot" // after the last octet went out
)

// Reply is a relay's answer. Message is the relay's own text and often repeats the
// recipient's address, so it may be shown to the caller but not logged. String and slog
// leave it out.
type Reply struct {
	Code     int    `json:"code"`     // 200 to 599
	Enhanced string `json:"enhanced"` // "5.1.1", or empty
	Message  string `json:"message"`
}

// String returns the code and the enhanced code.
func (r Reply) String() string {
	if r.Enhanced == "" {
		return strconv.Itoa(r.Code)
	}
	return strconv.Itoa(r.Code) + " " + r.Enhanced
}

// LogValue keeps the relay's text out of logs.
func (r Reply) LogValue() slog.Value { return slog.StringValue(r.String()) }

// private matches words with an address, and numbers that may be a code.
var private = regexp.MustCompile(`\S*@\S*|\d{4,}`)

// Masked returns the whole reply for operators, with … for each address and, as a filter may quote the text
// of what it refuses, for long numbers of a refusal.
func (r Reply) Masked(to address.Address) string {
	text := r.Message
	if r.Code >= 400 || strings.Contains(text, "@") {
		text = private.ReplaceAllString(text, "…")
	}
	if local, _, _ := strings.Cut(to.String(), "@"); len(local) > 2 {
		for at := indexFold(text, local); at >= 0; at = indexFold(text, local) {
			text = text[:at] + "…" + text[at+len(local):]
		}
	}
	return r.String() + " " + text
}

// indexFold is strings.Index for a text of ASCII, in upper or lower case.
func indexFold(text, part string) int {
	for at := range len(text) - len(part) + 1 {
		if strings.EqualFold(text[at:at+len(part)], part) {
			return at
		}
	}
	return -1
}

// Receipt says that a relay took responsibility for an email.
type Receipt struct {
	Relay string // host:port
	Reply Reply  // to the final dot; the text often names the queue entry
}

// Error says why an email was not accepted. Its text names the relay and the step, never an
// address or a secret.
type Error struct {
	Outcome    Outcome
	Relay      string          // host:port; empty if no relay was asked
	Step       Step            // empty if no relay was asked
	To         address.Address // the recipient that the relay refused, where it refused one
	Reply      *Reply          // the relay's answer, if there was one
	RetryAfter time.Duration   // when trying again may help, if that is known
	Err        error           // the cause, where there is more to say than the reply
}

// Error implements error.
func (e *Error) Error() string {
	text := "email " + string(e.Outcome)
	if e.Relay != "" {
		text = "relay " + e.Relay + ": " + string(e.Outcome)
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
func (e *Error) Unwrap() error { return e.Err }

// OfEmail returns the relay's reply, if that was about the email: its sender, a recipient or its text.
func (e *Error) OfEmail() *Reply {
	switch e.Step {
	case StepMAIL, StepRCPT, StepDATA, StepFinalDot:
		return e.Reply
	}
	return nil
}

// Final reports whether the relay refused the email for good, be it Rejected, or Unavailable because this
// server or its sender is at fault.
func (e *Error) Final() bool {
	r := e.OfEmail()
	return r != nil && r.Code/100 == 5 && (e.Outcome == Rejected || r.about() != aboutCommand)
}

var (
	// ErrUnsendable is matched if an email cannot go over the wire as it is, such as with a
	// bare CR or LF. The caller is at fault, not the relay; the email never left.
	ErrUnsendable = errors.New("the email cannot be sent as it is")

	// ErrTooBig is matched if the relay announced that it takes no text of this size.
	ErrTooBig = errors.New("the email is larger than the relay accepts")
	// ErrEightBit is matched if the relay takes no octets above 127 (8BITMIME).
	ErrEightBit = errors.New("the relay accepts only 7-bit text")

	errClosed    = errors.New("the relay connections are closed")
	errOpen      = errors.New("its circuit breaker is open")
	errOverLimit = errors.New("it accepts no more connections")
	errTooMany   = errors.New("too many sends are waiting for the relay")
	errTimeout   = errors.New("no answer in time")
	errTooEarly  = errors.New("the relay sent an unexpected reply")
)

func busy(retryAfter time.Duration) *Error {
	return &Error{Outcome: Busy, RetryAfter: retryAfter, Err: errTooMany}
}
