package cluster

import (
	"fmt"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// Meter returns a limiter that counts by a meter, on the same store as this one. It
// needs no Close, and there may be any number at once.
//
// Limiters of one name count together, in whatever process, if their meters have one
// form. So a limit can be changed while requests under the old one finish, and what is
// on record goes on to count. A meter of another form begins anew: the form stands in
// the keys, behind the name. With the default prefix they begin with
// "mailgate:name.form:{}".
//
// A key is kept until its state says nothing any more to the meter that wrote it last. Among
// windows of one form that is the same for all. A bucket has drained sooner by a faster
// rate; so two rates are for one that takes the other's place, not for two that go on
// admitting together.
//
// The name stands in each key as it is, and costs its bytes there. It is not checked and
// may be of any length. Made of the characters that throttle.CheckName lets pass, as
// "rule-" and a rule's name is, no two names are one: a "." or ":" in it could make them
// so, and in a Cluster braces would say where the keys are kept.
//
// The meter is one that package meter's own New functions made. With any other there is
// no script that counts alike, and where there is none, or the zero value of one, nothing
// is counted: Meter panics.
func (l *Limiter) Meter(name string, m meter.Meter) throttle.Recorder {
	if !meter.Usable(m) {
		panic("cluster: a limiter needs a meter that one of package meter's New functions made")
	}
	layout, known := layoutOf(m)
	if !known {
		panic(fmt.Sprintf("cluster: no script counts as a %T does", m))
	}
	return &metered{place: l.below(name + "." + m.Form()), meter: m, quota: m.Quota(), layout: layout}
}

// Tiers returns a limiter that admits by another policy, on the same store as
// this one. It needs no Close, and there may be any number at once.
//
// With a name, which is as for Meter, it keeps histories of its own: with the default
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
