package local

import "github.com/mailgate/mailgate/throttle"

// Tiers is a limiter by another policy on the same disk and in the same memory. It
// ends with the limiter it came from, and its own Close does nothing; and there may be any
// number of one name at once: they count together.
//
// A name is any text. Each has histories of its own, which no other name's can be taken
// for, and neither can a mailbox of the limiter without a name. The name "" stands for
// the very histories of l, so that a policy can be replaced while the old one still
// finishes its requests. A history is then kept for as long as the policy says that
// recorded in it last: one with a shorter longest window forgets what has left that
// window, and one with a longer looks back only as far as there is something on record.
// So it is for one policy in place of another. Two that go on admitting together, of which
// one looks back farther, belong under two names, or in one policy.
//
// A policy without tiers would admit everybody. Then that of l stays in force.
func (l *Limiter) Tiers(name string, p throttle.Policy) *Limiter {
	view := *l
	view.derived = true
	if !p.IsZero() {
		view.policy = p
	}
	if name != "" {
		view.named = "\x00" + nameInKey(name) + "\x00"
	}
	return &view
}

// part is what the keys of a mailbox's history begin with: nothing, unless the limiter
// has a name. A mailbox can begin with a NUL itself; so that it is not taken for a
// name, it gets one more. No name begins with a NUL.
func (l *Limiter) part(mailbox string) string {
	if l.named == "" && mailbox[0] == 0 {
		return "\x00"
	}
	return l.named
}
