package relay

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
)

// begin goes up to the relay's 354: MAIL, RCPT for each recipient, DATA, with RSET before where the last
// email was not accepted. With PIPELINING all go out at once. It returns the first failure; after
// one nothing more is sent.
func (c *conn) begin(e Envelope) (first *Error) {
	if e.EightBit && !c.offers.eightBit {
		return &Error{Outcome: Unavailable, Relay: c.relay.name, Step: StepMAIL, Err: ErrEightBit}
	}
	commands := c.commands(e)
	c.state = begun
	atOnce := c.offers.pipelining
	for i, command := range commands {
		timeout := c.relay.options.limits.Command
		if command.step == StepRCPT {
			timeout = c.relay.options.limits.RCPT
		}
		err := c.arm(timeout, c.budget.begin)
		switch {
		case err != nil || atOnce && i > 0:
		case atOnce:
			err = c.say(lines(commands)...)
		default:
			err = c.say(command.line)
		}
		if err != nil {
			return cmp.Or(first, c.lost(command.step, err))
		}
		failure := c.hear(command.step)
		switch {
		case failure != nil:
			failure.To = command.to
		case first != nil && command.step == StepDATA:
			// A relay that opens the text for a refused recipient waits for a final dot. It
			// gets none: without the connection there is nothing it could deliver.
			c.state = broken
		}
		first = cmp.Or(first, failure)
		if c.state == broken || first != nil && !atOnce {
			return first
		}
	}
	if first == nil && c.in.ahead() {
		// An answer given before its question would pass for the answer to the final dot.
		return c.lost(StepDATA, errTooEarly)
	}
	return first
}

// command is one line before the text, and the recipient that it is about.
type command struct {
	step Step
	line string
	to   address.Address
}

// commands are those of an email, up to its text.
func (c *conn) commands(e Envelope) (all []command) {
	if c.state != ready {
		all = append(all, command{step: StepRSET, line: "RSET"})
	}
	from := "MAIL FROM:<" + e.From.String() + ">"
	if e.EightBit {
		from += " BODY=8BITMIME"
	}
	all = append(all, command{step: StepMAIL, line: from})
	for _, to := range e.To {
		all = append(all, command{StepRCPT, "RCPT TO:<" + to.String() + ">", to})
	}
	return append(all, command{step: StepDATA, line: "DATA"})
}

func lines(commands []command) (all []string) {
	for _, one := range commands {
		all = append(all, one.line)
	}
	return all
}

// hear reads the reply to a command before the text, and returns a failure unless the command succeeded. On a kept
// connection, a refusal of MAIL or a 4xx to DATA may be about that connection alone. Examples are "554 idle timeout"
// and "452 4.4.5 Maximum number of messages per session exceeded".
func (c *conn) hear(step Step) *Error {
	code, err := c.in.next()
	trace.Event(c.budget.ctx, string(step), code)
	switch {
	case err != nil:
		return c.lost(step, err)
	case step == StepDATA && code == 354, step != StepDATA && code/100 == 2:
		return nil
	case code == 421, code/100 < 4, step == StepRSET, c.kept && (step == StepMAIL || step == StepDATA && code/100 == 4):
		c.state = broken
	}
	return c.refused(step, code)
}

// stale reports whether it was a kept connection that failed, and not the email, which
// certainly never left. A connection that answered MAIL and is silent at RCPT is not stale:
// the recipient is slow and would be so again.
func (c *conn) stale(failure *Error) bool {
	return c.kept && c.state == broken && failure.Outcome != Rejected && !(failure.Step == StepRCPT && errors.Is(failure, errTimeout))
}

// send sends the text with its final dot and waits for the answer. The outcome is exact about
// whether the last octet can have left.
func (c *conn) send(text []byte) (*Reply, *Error) {
	if c.offers.size > 0 && len(text) > c.offers.size {
		return nil, c.lost(StepContent, ErrTooBig) // and broken: the relay waits for a text
	}
	if err := c.arm(c.relay.options.limits.FinalDot, c.budget.until); err != nil {
		return nil, c.lost(StepContent, err)
	}
	c.out = stuff(c.out[:0], text)
	if n, err := c.stream.Write(c.out); err != nil && n < len(c.out) {
		// The last octet of CRLF.CRLF was never written, so whatever arrived is no email.
		return nil, c.lost(StepContent, err)
	}
	// From here on the email may have been delivered, and only a reply says otherwise.
	code, err := c.in.next()
	trace.Event(c.budget.ctx, string(StepFinalDot), code)
	if err != nil {
		failure := c.lost(StepFinalDot, err)
		failure.Outcome = Unknown
		return nil, failure
	}
	c.mails++
	failure := c.refused(StepFinalDot, code)
	switch {
	case code == 421, code/100 == 3, c.in.ahead():
		c.state = broken
	case code/100 == 2:
		c.state = ready
	}
	switch code / 100 {
	case 2:
		return failure.Reply, nil
	case 3:
		failure.Outcome = Unknown
	}
	return nil, failure
}

// maxLine is the limit of RFC 5321 for a line, without its CRLF.
const maxLine = 998

// Sendable reports whether a text can go over the wire as it is. A NUL, a line that is too long, and octets above 127
// without eightBit are not sendable. Nor is a CR or LF alone, as servers differ in what ends a line, which smuggles email
// (CVE-2023-51764).
func Sendable(text []byte, eightBit bool) bool {
	var all byte
	for _, c := range text {
		all |= c
	}
	for line := range bytes.Lines(text) {
		if end := len(line) - len("\r\n"); end > maxLine || !bytes.HasSuffix(line, []byte("\r\n")) || bytes.IndexByte(line, '\r') < end {
			return false
		}
	}
	return len(text) > 0 && (eightBit || all < 128) && bytes.IndexByte(text, 0) < 0
}

// stuff appends what follows DATA: the text, with dots doubled at the start of lines, and the final
// dot.
func stuff(to, text []byte) []byte {
	if bytes.HasPrefix(text, []byte(".")) {
		to = append(to, '.')
	}
	for {
		before, after, found := bytes.Cut(text, []byte("\r\n."))
		to = append(to, before...)
		if !found {
			return append(to, ".\r\n"...)
		}
		to, text = append(to, "\r\n.."...), after
	}
}
