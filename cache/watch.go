package cache

import (
	"log/slog"
	"time"
)

// State is what a data directory is like, as of a second ago at most unless its disk hangs.
type State struct {
	// Replaced means that the path does not name the files that are open.
	Replaced bool
	// Free is the room on the file system in bytes.
	Free int64
}

// State returns the state of the data directory; that of a store in memory is zero.
func (s *Store) State() State {
	if d, ok := s.records.(*disk); ok {
		return *d.state.Load()
	}
	return State{}
}

// watch looks whether the path still names what is open. What is written elsewhere would be
// forgotten by the next start, and another process could be using the path.
func (d *disk) watch() error {
	err := d.dir.same()
	d.state.Store(&State{Replaced: err != nil, Free: d.dir.free()})
	d.replaced.report(err)
	return err
}

// outage logs when something begins to fail and when it works again, at most every ten seconds: a
// disk that is just about full does both all the time.
type outage struct {
	log          *slog.Logger
	begins, ends string
	failing      bool
	said         time.Time
}

func (o *outage) report(err error) {
	const calm = 10 * time.Second
	if (err != nil) == o.failing || time.Since(o.said) < calm {
		return
	}
	o.failing, o.said = err != nil, time.Now()
	if o.failing {
		o.log.Warn(o.begins, "cause", err.Error())
	} else {
		o.log.Info(o.ends)
	}
}
