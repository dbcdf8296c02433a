package cluster

import (
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// Meters keeps the states of any number of limits that count by meters.
type Meters struct{ place }

// NewMeters makes Meters that keep what is on record in the store. They need no Close, and
// there may be any number on one store: all of them are the same.
func NewMeters(store *redisstore.Store) (*Meters, error) {
	if store == nil {
		return nil, errors.New("opening meters: there is no store")
	}
	store.Use(meterScripts...)
	return &Meters{place{store, store.Prefix()}}, nil
}

// Limiter returns a limiter that counts by a meter. It needs no Close, and there may be any
// number at once.
//
// Limiters of one name count together, in whatever process, if their meters have one
// form, see [meter.Meter]. So a limit can be changed while requests under the old one finish, and what is
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
// is counted: Limiter panics.
func (m *Meters) Limiter(name string, by meter.Meter) throttle.Recorder {
	if !meter.Usable(by) {
		panic("cluster: a limiter needs a meter that one of package meter's New functions made")
	}
	layout, known := layoutOf(by)
	if !known {
		panic(fmt.Sprintf("cluster: no script counts as a %T does", by))
	}
	return &metered{place: m.below(name + "." + by.Form()), meter: by, quota: by.Quota(), layout: layout}
}
