package relay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/mailer/address"
)

// command is one line of a transaction.
type command struct {
	step Step
	line string
}

// begin goes up to the relay's 354: MAIL, exactly one RCPT, DATA. RSET goes first where the
// last mail was not accepted.
func (c *conn) begin(b budget, from, to address.Address) *Error {
	commands := []command{
		{StepRSET, "RSET"},
		{StepMAIL, "MAIL FROM:<" + from.String() + ">"},
		{StepRCPT, "RCPT TO:<" + to.String() + ">"},
		{StepDATA, "DATA"},
	}
	if c.state == ready {
		commands = commands[1:]
	}
	stop := b.interrupt(c.socket)
	failure := c.exchange(b, commands)
	if !stop() {
		return cmp.Or(failure, c.lost(b, StepDATA, b.ctx.Err()))
	}
	return failure
}

// exchange says the commands and returns the first failure. After one, nothing more is sent.
func (c *conn) exchange(b budget, commands []command) (first *Error) {
	c.state, c.grouped = begun, c.offers.pipelining && !c.relay.apart.Load()
	said := 0
	for i, command := range commands {
		timeout := c.relay.options.limits.command
		if command.step == StepRCPT {
			timeout = c.relay.options.limits.rcpt
		}
		err := c.arm(b, timeout)
		if err == nil && i == said {
			if first != nil {
				return first
			}
			said = c.groupEnd(i, len(commands))
			_, err = c.stream.Write(lines(commands[i:said]))
		}
		if err != nil {
			return cmp.Or(first, c.lost(b, command.step, err))
		}
		failure := c.hear(b, command.step)
		if first != nil && failure == nil && command.step == StepDATA {
			// A relay that opens the text for a refused recipient waits for a final dot. It
			// gets none: without the connection there is nothing it could deliver.
			c.state = broken
		}
		if first = cmp.Or(first, failure); c.state == broken {
			return first
		}
	}
	if first == nil && c.in.ahead() {
		// An answer given before its question would pass for the answer to the final dot.
		return c.lost(b, StepDATA, errTooEarly)
	}
	return first
}

// groupEnd says up to where the commands from i on go out at once: all of them with PIPELINING,
// or only up to MAIL where it must be seen which of MAIL and RCPT the relay is silent at.
func (c *conn) groupEnd(i, all int) int {
	switch rcpt := all - 2; {
	case !c.offers.pipelining:
		return i + 1
	case !c.grouped && i < rcpt:
		return rcpt
	}
	return all
}

func lines(commands []command) []byte {
	var text []byte
	for _, command := range commands {
		text = append(append(text, command.line...), "\r\n"...)
	}
	return text
}

// hear reads the reply to a command before the text and returns a failure unless it is the
// one hoped for. A 4xx to MAIL or DATA on a kept connection may be about that connection
// alone, as "452 4.4.5 Maximum number of messages per session exceeded" is.
func (c *conn) hear(b budget, step Step) *Error {
	code, err := c.in.next()
	switch {
	case err != nil:
		return c.lost(b, step, err)
	case step == StepDATA && code == 354, step != StepDATA && code/100 == 2:
		return nil
	case code == 421, code/100 < 4, step == StepRSET, c.kept && code/100 == 4 && step != StepRCPT:
		c.state = broken
	}
	return c.refused(step, code)
}

// stale reports whether it was a kept connection that failed, and not the mail, which
// certainly never left. A connection that answered MAIL and is silent at RCPT is not stale:
// the recipient is slow and would be so again.
func (c *conn) stale(failure *Error) bool {
	return c.kept && c.state == broken && failure.Outcome != Rejected && !(failure.Step == StepRCPT && errors.Is(failure, errTimeout))
}

// send sends the text, of this size before dots were doubled, with its final dot, and waits
// for the answer. The outcome is exact about whether the last octet can have left.
func (c *conn) send(b budget, wire []byte, size int) (*Reply, *Error) {
	if c.offers.size > 0 && size > c.offers.size {
		return nil, c.lost(b, StepContent, errTooBig) // and broken: the relay waits for a text
	}
	stop := b.interrupt(c.socket)
	reply, failure := c.text(b, wire)
	if !stop() {
		c.state = broken
	}
	return reply, failure
}

func (c *conn) text(b budget, wire []byte) (*Reply, *Error) {
	if err := c.arm(b, c.relay.options.limits.finalDot); err != nil {
		return nil, c.lost(b, StepContent, err)
	}
	if n, err := c.stream.Write(wire); err != nil && n < len(wire) {
		// The last octet of CRLF.CRLF was never written, so whatever arrived is no mail.
		return nil, c.lost(b, StepContent, err)
	}
	// From here on the mail may have been delivered, and only a reply says otherwise.
	code, err := c.in.next()
	if err != nil {
		failure := c.lost(b, StepFinalDot, err)
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

// stuff makes of a mail what follows DATA: dots doubled at the start of lines, and the final
// dot. It refuses a CR or LF on its own, since servers differ in what they take for a line
// end and the difference smuggles mail (CVE-2023-51764), a NUL, octets above 127, which
// relays without 8BITMIME damage, a line that is too long, and nothing at all.
func stuff(text []byte) ([]byte, error) {
	wire := make([]byte, 0, len(text)+len(text)/64+len(".\r\n"))
	for left := text; len(left) > 0 || len(text) == 0; {
		line, rest, ended := bytes.Cut(left, []byte("\r\n"))
		if !ended || len(line) > maxLine || !sendable(line) {
			return nil, fmt.Errorf("%w: a line is not up to 998 octets of ASCII and a CRLF", ErrUnsendable)
		}
		if bytes.HasPrefix(line, []byte(".")) {
			wire = append(wire, '.')
		}
		wire = append(append(wire, line...), "\r\n"...)
		left = rest
	}
	return append(wire, ".\r\n"...), nil
}

func sendable(line []byte) bool {
	for _, c := range line {
		if c == '\r' || c == '\n' || c == 0 || c > 127 {
			return false
		}
	}
	return true
}
