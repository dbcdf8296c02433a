// Package fault is a mail relay that misbehaves on command, for tests of programs that send mail. It speaks
// SMTP on loopback and does one thing wrong where its Script says so. It keeps every octet that it was sent:
// a test can tell what went over the wire, and whether an email could have been delivered.
package fault

import (
	"crypto/tls"
	"time"
)

// Step is where in the conversation something happens.
type Step string

// The steps. Content is the email's text while it arrives, Dot the answer to
// its end, Handshake the TLS handshake.
const (
	Banner    Step = "banner"
	Handshake Step = "handshake"
	EHLO      Step = "EHLO"
	STARTTLS  Step = "STARTTLS"
	AUTH      Step = "AUTH"
	RSET      Step = "RSET"
	MAIL      Step = "MAIL"
	RCPT      Step = "RCPT"
	DATA      Step = "DATA"
	Content   Step = "content"
	Dot       Step = "dot"
)

// Kind is what goes wrong.
type Kind string

// The kinds of fault.
const (
	None      Kind = ""
	Silence   Kind = "silence"    // no answer, the connection stays open (at Content: no reading either)
	Temporary Kind = "4xx"        // 451
	Permanent Kind = "5xx"        // 554 5.1.1, as of a recipient that is not there
	Barred    Kind = "5.7.1"      // 554 5.7.1, as to a sender that may not use the relay
	Curt      Kind = "550"        // 550 without an enhanced code
	Echo      Kind = "echo"       // 500 5.5.2, with the line that was sent
	Tell      Kind = "tell"       // at AUTH: 535 5.7.8, with the password in plain
	Leaving   Kind = "421"        // and the connection closes
	Expelling Kind = "554"        // and the connection closes, as of one that was idle
	HangUp    Kind = "hang-up"    // the connection closes without an answer
	Reset     Kind = "reset"      // the connection is reset
	Drip      Kind = "drip"       // the right answer, an octet now and then
	Garbage   Kind = "garbage"    // an answer that is not SMTP
	Endless   Kind = "endless"    // an answer whose lines never end
	LongLine  Kind = "long line"  // an answer whose one line never ends
	WrongCode Kind = "wrong code" // an answer that fits another question: 250 for 354, 354 for 250
	Chatter   Kind = "chatter"    // the right answer, and an unexpected 250
	Challenge Kind = "challenge"  // at AUTH: 334 with the reason, and 535 5.7.8 to an empty line
)

// Script is what a relay does. The zero value is one without fault.
type Script struct {
	// At and Kind are the fault.
	At   Step
	Kind Kind
	// To, when At is RCPT, is what a recipient must contain to meet the fault.
	To string
	// After is how often that step goes well before the fault, over all
	// connections, and Times how often it then fails; 0 means for ever.
	After, Times int
	// DripEvery is the time between two octets of a Drip; 50 ms if zero.
	DripEvery time.Duration

	// HoldBack keeps answers back while more commands have come than were
	// answered, as servers do that send what they have to say in one packet.
	HoldBack bool

	// These leave an extension out of EHLO's answer.
	NoPipelining, NoSTARTTLS, NoAUTH, NoEightBit bool
	// Size is the greatest email that EHLO's answer says is taken, 0 for 100 MB.
	Size int
	// MostConns are taken at once, 0 for any number. One more is told 421 and closed.
	MostConns int
	// MostSending of those connections may send, 0 for any number. What comes over one that
	// was made beyond them is told 432 at its final dot.
	MostSending int
	// LoginOnly offers AUTH LOGIN without PLAIN.
	LoginOnly bool
	// OpenForRefused answers DATA with 354 though the recipient was refused.
	OpenForRefused bool

	// TLS, when set, offers STARTTLS, or with ImplicitTLS speaks TLS from the
	// first octet.
	TLS         *tls.Config
	ImplicitTLS bool
}
