package mailer

import "time"

// hurry is what a recipient whose turn in the slow share does not come must do
// with: this part of RCPTTimeout.
const hurry = 5

// slowShare are the places of connections that may wait for RCPT's answer as
// long as RCPTTimeout; whoever finds none free waits a fifth of that. Anybody
// can name recipients at any number of domains whose servers let the relay
// wait, so these are not told apart from each other but bounded together: the
// connections outside the share are never long in coming free.
type slowShare chan struct{}

func newSlowShare(most int) slowShare { return make(slowShare, most) }

// enter says whether there was a place. If so, leave gives it back.
func (s slowShare) enter() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slowShare) leave() { <-s }

// namesRecipient says whether RCPT is in a group.
func namesRecipient(group []command) bool {
	for _, command := range group {
		if command.step == StepRCPT {
			return true
		}
	}
	return false
}

// timeout is how long the answer to a command may take. With RCPT in the same
// group, a wait for what comes before it may be the recipient's doing, too:
// some servers send all their answers at once.
func (c *smtpConn) timeout(step Step) time.Duration {
	most := c.opener.options.CommandTimeout
	if step == StepRCPT {
		most = c.opener.options.RCPTTimeout
	}
	if c.hurried && step != StepDATA {
		return min(most, c.opener.options.RCPTTimeout/hurry)
	}
	return most
}
