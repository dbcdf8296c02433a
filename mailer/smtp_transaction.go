package mailer

import (
	"cmp"
	"strconv"
	"time"
)

// deliver hands one mail over. The outcome is exact about the one thing that
// matters: whether the mail's last octet can have left.
//
// c.broken afterwards says that the connection must not be used again.
func (c *smtpConn) deliver(p patience, l *letter) (*Reply, *SendError) {
	c.recipient = notAsked
	if why := c.offers.unfit(l); why != nil {
		return nil, &SendError{Outcome: Unavailable, Relay: c.relay, Step: StepMAIL, Err: why}
	}
	stop := interruptible(p.ctx, c.socket)
	failure := c.begin(p, l)
	var accepted *Reply
	if failure == nil {
		accepted, failure = c.hand(p, l)
	}
	if !stop() {
		c.broken = true
	}
	c.mails++
	return accepted, failure
}

// begin goes up to the relay's 354: RSET on a connection that was used before,
// MAIL, exactly one RCPT, DATA. Where the relay offers PIPELINING they go out
// as one group, or as two when it must be seen which of MAIL and RCPT it is
// silent at. After a group with a refusal nothing more is sent.
func (c *smtpConn) begin(p patience, l *letter) *SendError {
	var lines [4]command
	apart := c.opener.apart.Load()
	c.ranAhead = c.offers.pipelining && !apart
	for left := c.compose(lines[:0], l); len(left) > 0; {
		n := 1
		for c.offers.pipelining && n < len(left) && !(apart && left[n].step == StepRCPT) {
			n++
		}
		if failure := c.exchange(p, left[:n]); failure != nil {
			return failure
		}
		left = left[n:]
	}
	if c.in.ahead() {
		// An answer given before its question would pass for the answer to
		// the final dot.
		return c.lost(p, StepDATA, errOutOfStep)
	}
	return nil
}

// command is one line, as it lies in c.out with the next right behind it.
type command struct {
	step Step
	line []byte
}

func (c *smtpConn) compose(group []command, l *letter) []command {
	out, start := c.out[:0], 0
	end := func(step Step) {
		out = append(out, "\r\n"...)
		group = append(group, command{step: step, line: out[start:]})
		start = len(out)
	}
	// Room first, so that the lines above stay where they are in memory.
	if need := len(l.from) + len(l.to) + 128; cap(out) < need {
		out = make([]byte, 0, need)
	}
	if c.mails > 0 {
		out = append(out, "RSET"...)
		end(StepRSET)
	}
	out = append(append(append(out, "MAIL FROM:<"...), l.from...), '>')
	if c.offers.size {
		out = strconv.AppendInt(append(out, " SIZE="...), int64(l.size), 10)
	}
	switch {
	case l.eightBit:
		out = append(out, " BODY=8BITMIME"...)
	case c.offers.eightBitMIME:
		out = append(out, " BODY=7BIT"...)
	}
	end(StepMAIL)
	out = append(append(append(out, "RCPT TO:<"...), l.to...), '>')
	end(StepRCPT)
	out = append(out, "DATA"...)
	end(StepDATA)
	c.out = out
	return group
}

// exchange sends commands as one group, reads a reply for each and returns the
// first failure.
func (c *smtpConn) exchange(p patience, group []command) (first *SendError) {
	if c.hurried = false; namesRecipient(group) {
		if c.opener.slow.enter() {
			defer c.opener.slow.leave()
		} else {
			c.hurried = true
		}
	}
	size, sent := 0, time.Now()
	for _, command := range group {
		size += len(command.line)
	}
	for i, command := range group {
		if err := c.arm(p, c.timeout(command.step)); err != nil {
			return cmp.Or(first, c.lost(p, command.step, err))
		}
		if i == 0 {
			if _, err := c.stream.Write(command.line[:size]); err != nil {
				return c.lost(p, command.step, err)
			}
		}
		failure := c.hear(p, command.step)
		if command.step == StepRCPT {
			c.recipient = c.answering(sent, failure)
		}
		if first == nil {
			first = failure
			c.broken = c.broken || (c.mails > 0 && forNow(failure))
		} else if failure == nil && command.step == StepDATA {
			// A relay that opens the mail's text for a refused recipient waits
			// for a final dot. It gets none, ever: with the connection gone
			// there is nothing that it could deliver.
			c.broken = true
		}
		if c.broken {
			break
		}
	}
	return first
}

// hear reads the reply to a command and judges it.
func (c *smtpConn) hear(p patience, step Step) *SendError {
	code, err := c.in.next()
	if err != nil {
		return c.lost(p, step, err)
	}
	return c.judge(step, code)
}

// judge turns the reply to a command before the mail's text into a failure,
// or nil if it is the one hoped for.
func (c *smtpConn) judge(step Step, code int) *SendError {
	if hoped := code == 354; (step == StepDATA && hoped) || (step != StepDATA && code/100 == 2) {
		return nil
	}
	failure := &SendError{Outcome: Unavailable, Relay: c.relay, Step: step, Reply: newReply(code, c.in.text)}
	switch {
	case code == 421, code/100 < 4, step == StepRSET:
		// It is leaving, or is not speaking SMTP any more.
		c.broken = true
	case step == StepMAIL:
		// "Not your domain", "over your quota": that is about us, as no recipient
		// was named yet.
	case code/100 == 5:
		failure.Outcome = failure.Reply.refused()
	}
	return failure
}

// hand sends the mail's text and its final dot, and waits for the answer.
func (c *smtpConn) hand(p patience, l *letter) (*Reply, *SendError) {
	if err := l.mayLeave(p); err != nil {
		// The relay waits for a text that it will not get.
		c.broken = true
		return nil, &SendError{Outcome: Unavailable, Relay: c.relay, Step: StepContent, Err: err}
	}
	if err := c.arm(p, c.opener.options.FinalDotTimeout); err != nil {
		return nil, c.lost(p, StepContent, err)
	}
	if n, err := c.stream.Write(l.wire); err != nil && n < len(l.wire) {
		// The last octet of CRLF.CRLF was never written: whatever arrived is
		// no mail.
		return nil, c.lost(p, StepContent, err)
	}
	// From here on the mail may have been delivered, and only a reply says
	// otherwise.
	code, err := c.in.next()
	if err != nil {
		failure := c.lost(p, StepFinalDot, err)
		failure.Outcome = Unknown
		return nil, failure
	}
	c.broken = c.broken || code == 421 || c.in.ahead()
	reply := newReply(code, c.in.text)
	switch code / 100 {
	case 2:
		return reply, nil
	case 4:
		return nil, &SendError{Outcome: Unavailable, Relay: c.relay, Step: StepFinalDot, Reply: reply}
	case 5:
		return nil, &SendError{Outcome: reply.refused(), Relay: c.relay, Step: StepFinalDot, Reply: reply}
	}
	c.broken = true
	return nil, &SendError{Outcome: Unknown, Relay: c.relay, Step: StepFinalDot, Reply: reply}
}
