package outage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
