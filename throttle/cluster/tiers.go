package cluster

import "github.com/mailgate/mailgate/throttle"

// Tiers returns a limiter that admits by another policy, on the same store as
// this one. It needs no Close, and there may be any number at once.
//
// With a name, which is as for Meters.Limiter, it keeps histories of its own: with the default
// prefix their keys begin with "mailgate:name:{}". Without, it goes on with the histories
// of this limiter; that is for a policy that takes the place of another. What has left the
// longest window of a policy that was in use meanwhile is forgotten. Two policies that go
// on admitting together, in this process or in several, of which one looks back farther,
// belong under two names, or in one policy.
//
// A policy without tiers would admit everybody. Then that of l stays in force.
func (l *Limiter) Tiers(name string, p throttle.Policy) *Limiter {
	view := *l
	if !p.IsZero() {
		view.policy, view.tiers = p, packTiers(p)
	}
	if name != "" {
		view.place = l.below(name)
	}
	return &view
}
