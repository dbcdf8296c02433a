package local

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// MetersOptions say where states are kept and what to remember in memory.
type MetersOptions struct {
	// Name keeps these states apart from what else is on the disk, and only one Meters
	// or Limiter at a time can have it. The default is "meters".
	Name string
	// Size is how much is kept in memory, of all limits together; the default is
	// cache.DefaultSize.
	Size cache.Size
	// Now reads the clock; the default is clock.Now.
	Now func() int64
}

// Meters keeps the states of any number of limits that count by meters.
type Meters struct {
	// States are shared with whoever reads them and never change once they are in here.
	states *sharedMap[*meter.State]
	now    func() int64
}

// NewMeters opens the states that are on the disk. The disk stays the caller's to close,
// after the Meters.
func NewMeters(disk *cache.Disk, o MetersOptions) (*Meters, error) {
	if o.Name == "" {
		o.Name = "meters"
	}
	states, err := openMap(disk, o.Name, stateCodec{}, o.Size)
	if err != nil {
		return nil, fmt.Errorf("opening meters: %w", err)
	}
	return &Meters{states: states, now: orMachine(o.Now)}, nil
}

// Limiter admits sends by a meter. It needs no Close, and there may be any number at
// once; those of one name count together if their meters have one form, see [meter.Meter]. So
// a limit can be changed while requests under the old one finish, and what is on record goes on to
// count. A meter of another form begins anew, and what was counted by one stays where it is,
// also at a Reset: it counts again for a Limiter of that form, until it expires. A name is any
// text.
//
// What is on record is kept until it says nothing any more to the meter that wrote it
// last. Among windows of one form that is the same for all. A bucket has drained sooner by
// a faster rate; so two rates are for one that takes the other's place, not for two that
// go on admitting together.
//
// Where there is no meter, or the zero value of one, Limiter panics: those count nothing.
func (m *Meters) Limiter(name string, by meter.Meter) throttle.Recorder {
	if !meter.Usable(by) {
		panic("local: a limiter needs a meter that one of package meter's New functions made")
	}
	return &metered{meter: by, quota: by.Quota(), part: nameInKey(name) + "/" + by.Form() + "\x00", states: m.states, now: m.now}
}

// Ready says whether an admission could be recorded now; see [Limiter.Ready].
func (m *Meters) Ready(ctx context.Context) error { return ready(ctx, m.states) }

// Close waits for calls that are under way. Later ones fail, those of all limiters.
func (m *Meters) Close() { m.states.Close() }
