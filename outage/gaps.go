package outage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// gaps are until when the own history of each account may lack an admission, for whoever
// runs here after this process. A disk that could not take the admission seldom takes the
// mark in that moment: the worker tries until it does.
type gaps struct {
	disk  *cache.Map[int64]
	found map[string]int64 // those of before, by account
}

func openGaps(disk *cache.Disk) (*gaps, error) {
	m, err := cache.NewMap(disk, "gaps", momentCodec{}, cache.Size{Entries: 1, Bytes: 1024})
	if err != nil {
		return nil, fmt.Errorf("opening the gaps: %w", err)
	}
	g := &gaps{disk: m, found: map[string]int64{}}
	err = m.Each(context.Background(), ever(), func(account string, until int64) bool {
		g.found[account] = until
		return true
	})
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("opening the gaps: %w", err)
	}
	return g, nil
}

// mark notes on disk until when the own history of an account may lack an admission; 0 is
// that it lacks none.
func (g *gaps) mark(account string, now, until int64) error {
	return g.disk.Update(context.Background(), account, func() int64 { return now }, func(int64, bool, int64) cache.Edit[int64] {
		if until == 0 {
			return cache.Remove[int64]()
		}
		return cache.Put(until, until)
	})
}

func (g *gaps) close() { g.disk.Close() }

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

// whole reports whether the own history lacks nothing that still counts.
func (a *account) whole() bool { return a.distrusted.Load() <= a.watch.o.Now() }

// errGaps is why a node that has something to go on with does not.
var errGaps = throttle.Unchanged(errors.New("what this node has noted has gaps"))

// hasGaps reports whether any of the node's own histories may lack an admission, so that a
// send which it has to admit is refused.
func (w *Watch) hasGaps() bool {
	return slices.ContainsFunc(w.parts(), func(a *account) bool { return !a.whole() })
}

// closeGaps has the own histories take what they lack, notes on disk what they go on lacking,
// and reports whether nothing of that is left to do. It is the worker's.
func (w *Watch) closeGaps() (done bool) {
	done = true
	for _, a := range w.parts() {
		a.fill(w.ctx)
		done = a.mark() && a.lacksNothing() && done
	}
	return done
}

func (a *account) lacksNothing() bool {
	a.gap.Lock()
	defer a.gap.Unlock()
	return len(a.missing) == 0
}

// markGaps sees to it that all gaps are on disk, and reports whether they are.
func (w *Watch) markGaps() (done bool) {
	done = true
	for _, a := range w.parts() {
		done = a.mark() && done
	}
	return done
}

// mark has the disk say until when the own history may lack something, and reports whether
// it does.
func (a *account) mark() bool {
	until := a.distrusted.Load()
	if a.whole() {
		until = 0
	}
	if until != a.marked {
		if a.watch.gaps.mark(a.name, a.watch.o.Now(), until) != nil {
			return false
		}
		a.marked = until
	}
	return true
}

// momentCodec writes a moment as a number.
type momentCodec struct{}

var errMoment = errors.New("not a moment")

// Append implements cache.Codec.
func (momentCodec) Append(b []byte, at int64) []byte { return binary.AppendVarint(b, at) }

// Parse implements cache.Codec.
func (momentCodec) Parse(b []byte) (int64, error) {
	at, n := binary.Varint(b)
	if n != len(b) {
		return 0, errMoment
	}
	return at, nil
}

// Weigh implements cache.Codec.
func (momentCodec) Weigh(int64) int { return 8 }
