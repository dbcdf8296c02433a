package relay

import (
	"bytes"
	"cmp"
	"errors"
	"strings"
)

var errTooBig = errors.New("the mail is larger than the relay takes")

// command is one line of a group.
type command struct {
	step Step
	line string
}

// begin goes up to the relay's 354: MAIL, exactly one RCPT, DATA, as one group where the relay
// offers PIPELINING. Where it must be seen which of MAIL and RCPT the relay is silent at, RCPT
// waits for the answer to MAIL. RSET goes first where the last mail was not accepted.
func (c *conn) begin(b budget, mail envelope) *Error {
	stop := interruptible(b.ctx, c.socket)
	failure := c.open(b, mail)
	if !stop() {
		c.broken = true
		if failure == nil {
			failure = c.lost(b, StepDATA, b.ctx.Err())
		}
	}
	return failure
}

func (c *conn) open(b budget, mail envelope) *Error {
	var sender []command
	if c.dirty {
		sender = append(sender, command{StepRSET, "RSET"})
	}
	sender = append(sender, command{StepMAIL, "MAIL FROM:<" + mail.from.String() + ">"})
	recipient := []command{{StepRCPT, "RCPT TO:<" + mail.to.String() + ">"}, {StepDATA, "DATA"}}
	groups := [][]command{append(sender, recipient...)}
	if c.apart.Load() {
		groups = [][]command{sender, recipient}
	}
	c.dirty, c.ranAhead = true, c.offers.pipelining && len(groups) == 1
	for _, group := range groups {
		if failure := c.exchange(b, group); failure != nil {
			return failure
		}
	}
	if c.in.ahead() {
		// An answer given before its question would pass for the answer to the final dot.
		return c.lost(b, StepDATA, errOutOfStep)
	}
	return nil
}

// exchange says commands, as one group where the relay offers PIPELINING, and returns the
// first failure. After one, nothing more is sent.
func (c *conn) exchange(b budget, group []command) (first *Error) {
	if !c.offers.pipelining && len(group) > 1 {
		for i := range group {
			if failure := c.exchange(b, group[i:i+1]); failure != nil {
				return failure
			}
		}
		return nil
	}
	var lines strings.Builder
	for _, command := range group {
		lines.WriteString(command.line + "\r\n")
	}
	for i, command := range group {
		timeout := c.options.CommandTimeout
		if command.step == StepRCPT {
			timeout = c.options.RCPTTimeout
		}
		if err := c.arm(b, timeout); err != nil {
			return cmp.Or(first, c.lost(b, command.step, err))
		}
		if i == 0 {
			if _, err := c.stream.Write([]byte(lines.String())); err != nil {
				return c.lost(b, command.step, err)
			}
		}
		failure := c.hear(b, command.step)
		if first == nil {
			first = failure
		} else if failure == nil && command.step == StepDATA {
			// A relay that opens the text for a refused recipient waits for a final dot. It
			// gets none: without the connection there is nothing it could deliver.
			c.broken = true
		}
		if c.broken {
			break
		}
	}
	return first
}

// hear reads the reply to a command before the text and returns a failure unless it is the
// one hoped for.
func (c *conn) hear(b budget, step Step) *Error {
	code, err := c.in.next()
	if err != nil {
		return c.lost(b, step, err)
	}
	if step == StepDATA && code == 354 || step != StepDATA && code/100 == 2 {
		return nil
	}
	failure := c.refused(step, code)
	switch {
	case code == 421, code/100 < 4, step == StepRSET, c.kept && spent(failure):
		c.broken = true
	case step != StepMAIL && code/100 == 5: // at MAIL no recipient was named yet
		failure.Outcome = failure.Reply.outcome()
	}
	return failure
}

// spent reports whether MAIL or DATA was answered 4xx, which on a kept connection may be
// about that connection alone, as "452 4.4.5 Maximum number of messages per session
// exceeded" is. Many relays look at the recipient only at DATA, so there the reply decides.
func spent(failure *Error) bool {
	if failure.Reply == nil || failure.Reply.Code/100 != 4 {
		return false
	}
	return failure.Step == StepMAIL || failure.Step == StepDATA && failure.Reply.about() == aboutSession
}

// blurred reports whether the connection broke before MAIL was answered, with RCPT sent along
// with it: servers may hold the answer to MAIL back until they have that to RCPT, which may
// wait on the recipient.
func (c *conn) blurred(failure *Error) bool {
	return c != nil && c.broken && c.ranAhead && failure.Reply == nil && (failure.Step == StepRSET || failure.Step == StepMAIL)
}

// stale reports whether it was a kept connection that failed, and not the mail, which
// certainly never left. A connection that answered MAIL and is silent at RCPT is not stale:
// the recipient is slow and would be so again.
func (c *conn) stale(failure *Error) bool {
	if !c.kept || !c.broken || failure.Outcome != Unavailable || failure.Step == StepFinalDot || errors.Is(failure, errTooBig) {
		return false
	}
	if failure.Step == StepRCPT && errors.Is(failure, errTimeout) {
		return false
	}
	return failure.Reply == nil || failure.Reply.Code == 421 || failure.Step == StepRSET || spent(failure)
}

// send sends the text, of this size before dots were doubled, with its final dot, and waits
// for the answer. The outcome is exact about whether the last octet can have left.
func (c *conn) send(b budget, wire []byte, size int) (*Reply, *Error) {
	if c.offers.size > 0 && size > c.offers.size {
		c.broken = true // the relay waits for a text that it will not get
		return nil, &Error{Outcome: Unavailable, Relay: c.url.Addr(), Step: StepContent, Err: errTooBig}
	}
	stop := interruptible(b.ctx, c.socket)
	reply, failure := c.text(b, wire)
	if !stop() {
		c.broken = true
	}
	return reply, failure
}

func (c *conn) text(b budget, wire []byte) (*Reply, *Error) {
	if err := c.arm(b, c.options.FinalDotTimeout); err != nil {
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
	c.dirty = code/100 != 2
	c.broken = c.broken || code == 421 || c.in.ahead()
	failure := c.refused(StepFinalDot, code)
	switch code / 100 {
	case 2:
		return failure.Reply, nil
	case 4: // not taken over
	case 5:
		failure.Outcome = failure.Reply.outcome()
	default:
		c.broken = true
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
	if !bytes.HasSuffix(text, []byte("\r\n")) {
		return nil, unsendable("it does not end in CRLF")
	}
	wire := make([]byte, 0, len(text)+len(text)/64+len(".\r\n"))
	for line := range bytes.SplitAfterSeq(text, []byte("\r\n")) {
		content := bytes.TrimSuffix(line, []byte("\r\n"))
		if len(content) > maxLine {
			return nil, unsendable("it has a line of more than 998 octets")
		}
		if bytes.ContainsFunc(content, func(c rune) bool { return c == '\r' || c == '\n' || c == 0 || c > 127 }) {
			return nil, unsendable("it has a bare CR or LF, a NUL or an octet above 127")
		}
		if bytes.HasPrefix(line, []byte(".")) {
			wire = append(wire, '.')
		}
		wire = append(wire, line...)
	}
	return append(wire, ".\r\n"...), nil
}
