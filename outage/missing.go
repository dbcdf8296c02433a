package outage

import (
	"context"
	"maps"

	"github.com/mailgate/mailgate/throttle"
)

// A missing admission is one that the own history could not take.
type missing struct {
	key string
	id  throttle.ID
}

// counts are when it was made, until when it counts, and what ends when it has been noted,
// where that takes long.
type counts struct {
	at, until int64
	noting    <-chan error
}

// mostMissing is how many of them an account remembers until the disk takes them. What is
// more is a gap for as long as it counts.
const mostMissing = 10_000

// lacks remembers what the own history could not take, and reports whether it was whole
// before.
func (a *account) lacks(m missing, c counts) (first bool) {
	a.gap.Lock()
	defer a.gap.Unlock()
	if len(a.missing) < mostMissing {
		a.missing[m] = c
	} else {
		a.lost = max(a.lost, c.until)
	}
	before := a.distrusted.Load()
	a.distrusted.Store(max(before, c.until))
	a.watch.rouse()
	return before <= a.watch.o.Now()
}

// dismiss forgets a missing admission.
func (a *account) dismiss(m missing) {
	if a.distrusted.Load() == 0 {
		return
	}
	a.gap.Lock()
	defer a.gap.Unlock()
	delete(a.missing, m)
}

// dismissAll forgets the missing admissions of a key.
func (a *account) dismissAll(key string) {
	a.gap.Lock()
	defer a.gap.Unlock()
	maps.DeleteFunc(a.missing, func(m missing, _ counts) bool { return m.key == key })
}

// wanted are those that count, and that are not being noted.
func (a *account) wanted() map[missing]counts {
	now := a.watch.o.Now()
	a.gap.Lock()
	defer a.gap.Unlock()
	maps.DeleteFunc(a.missing, func(_ missing, c counts) bool { return c.until <= now && c.noting == nil })
	wanted := maps.Clone(a.missing)
	maps.DeleteFunc(wanted, func(_ missing, c counts) bool { return c.noting != nil })
	return wanted
}

// fill has the own history take what it lacks, as far as it does, and trusts it again when
// it has all.
func (a *account) fill(ctx context.Context) {
	for m, when := range a.wanted() {
		own := *a.noting.Load()
		ends, err := a.watch.scribe.write(func() error {
			return own.Record(ctx, m.key, throttle.Admission{ID: m.id, At: when.at})
		})
		if ends != nil {
			a.expects(m, nil, ends)
			go a.await(own, m, ends)
		}
		if err != nil {
			return
		}
		a.filled(own, m, nil)
	}
	if a.healed() {
		a.watch.o.Log.Info("this node has noted all that was admitted, and would go on alone in an outage", "what", a.name)
	}
}

// expects takes note of which attempt a missing admission is being noted by, in place of
// another or of none.
func (a *account) expects(m missing, before, now <-chan error) {
	a.gap.Lock()
	defer a.gap.Unlock()
	if c, found := a.missing[m]; found && c.noting == before {
		c.noting = now
		a.missing[m] = c
	}
}

// await sees to a missing admission that is noted late. The worker does the rest.
func (a *account) await(own throttle.Recorder, m missing, ends <-chan error) {
	if <-ends != nil {
		a.expects(m, ends, nil)
	} else {
		a.filled(own, m, ends)
	}
	a.watch.rouse()
}

// filled forgets a missing admission that the own history has taken, unless somebody has it
// noted again.
func (a *account) filled(own throttle.Recorder, m missing, by <-chan error) {
	a.gap.Lock()
	c, found := a.missing[m]
	if found && c.noting == by {
		delete(a.missing, m)
	}
	a.gap.Unlock()
	if !found { // given back meanwhile
		_, _ = own.Release(context.Background(), m.key, m.id) // at worst the node is too strict
	}
}

// healed reports whether the own history has become whole just now, and not by the time.
func (a *account) healed() bool {
	a.gap.Lock()
	defer a.gap.Unlock()
	if len(a.missing) > 0 || a.distrusted.Load() <= a.lost {
		return false
	}
	before := a.whole()
	a.distrusted.Store(a.lost)
	return !before && a.whole()
}

func (a *account) lacksNothing() bool {
	a.gap.Lock()
	defer a.gap.Unlock()
	return len(a.missing) == 0
}
