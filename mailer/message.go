package mailer

import "context"

// Message is one finished mail and its envelope, ready for a relay. A Composer
// makes it; a relay hands it over as it stands and changes no octet.
type Message struct {
	// ID is the Message-ID, with its angle brackets.
	ID string
	// From and To are the envelope: bare ASCII addresses, without brackets,
	// each at most 254 octets and free of control characters and spaces.
	From, To string
	// Bytes is the whole RFC 5322 text: header and body, every line ended by
	// CRLF, seven bits, no line longer than 998 octets. Dots are not stuffed.
	Bytes []byte
	// Leaving, if there is one, is called when a relay is ready for the mail's text,
	// right before the first octet of it goes out: up to there the mail certainly has
	// not left, from there on it may have. Its error keeps the mail from leaving; the
	// mail is then Unavailable, with that cause, and no other relay is asked. It is
	// called once for each try, on the goroutine of Send.
	Leaving func(context.Context) error
	// Caller is who asked for the mail, by any name: where mails must wait, the
	// callers take turns. It goes nowhere else. Those without one are one caller.
	Caller string
}
