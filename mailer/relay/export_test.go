package relay

import (
	"cmp"
	"time"
)

// Limits are those limits of the product that tests change; zero fields stay as they are.
type Limits struct {
	Waiting, Failures                                int
	Idle, Connect, Command, RCPT, FinalDot, Cooldown time.Duration
	Now                                              func() int64
}

// With returns options with other limits.
func (o Options) With(l Limits) Options {
	changed := standard
	changed.waiting = cmp.Or(l.Waiting, changed.waiting)
	changed.idle = cmp.Or(l.Idle, changed.idle)
	changed.connect = cmp.Or(l.Connect, changed.connect)
	changed.command = cmp.Or(l.Command, changed.command)
	changed.rcpt = cmp.Or(l.RCPT, changed.rcpt)
	changed.finalDot = cmp.Or(l.FinalDot, changed.finalDot)
	changed.breaker.Failures = cmp.Or(l.Failures, changed.breaker.Failures)
	changed.breaker.Cooldown = cmp.Or(l.Cooldown, changed.breaker.Cooldown)
	if l.Now != nil {
		changed.now = l.Now
	}
	o.limits = &changed
	return o
}
