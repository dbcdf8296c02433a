package cluster

import (
	"fmt"

	"github.com/mailgate/mailgate/redisstore"
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
// The name is as throttle.CheckName has it. The meter is one of package meter's own;
// with any other there is no script that counts alike, and Meter panics.
func (l *Limiter) Meter(name string, m meter.Meter) throttle.Limiter {
	layout, known := layoutOf(m)
	if !known {
		panic(fmt.Sprintf("cluster: no script counts as a %T does", m))
	}
	return &metered{store: l.store, prefix: redisstore.Below(l.prefix, name+"."+m.Form()), meter: m, layout: layout}
}

// Tiers returns a limiter that admits by another policy, on the same store as
// this one. It needs no Close, and there may be any number at once.
//
// With a name it keeps histories of its own: with the default prefix their keys begin
// with "mailgate:name:{}". Without, it goes on with the histories of this limiter; that
// is for a policy that takes the place of another. What has left the longest window of
// a policy that was in use meanwhile is forgotten.
func (l *Limiter) Tiers(name string, p throttle.Policy) *Limiter {
	prefix := l.prefix
	if name != "" {
		prefix = redisstore.Below(prefix, name)
	}
	return &Limiter{store: l.store, policy: p, tiers: packTiers(p), prefix: prefix}
}
