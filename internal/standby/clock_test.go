package standby

import (
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
)

// The machine's clock may be set while a process runs. The next one knows Redis's clock all the same.
func TestClock_MachineSet_NextProcessGoesOnFromRedis(t *testing.T) {
	t.Parallel()
	store := must.Get(cache.Open(cache.Options{Dir: t.TempDir(), Now: NewClock().Now}))(t)
	t.Cleanup(func() { _ = store.Close() })
	process := func() *Standby {
		return &Standby{
			o: Options{Clock: NewClock(), Store: store}, work: t.Context(),
			mirror: &mirror{}, journal: newJournal(store.Table("journal"), maxOperations),
		}
	}
	before, after := process(), process()
	before.o.Clock.machine -= time.Hour.Milliseconds() // it was an hour behind at the start, and is right since
	before.o.Clock.Hear(time.Now().UnixMilli(), time.Now())
	must.OK(t, before.save())
	must.OK(t, after.load())
	if off := time.Since(time.UnixMilli(after.o.Clock.Now())); off.Abs() > time.Minute {
		t.Errorf("the clock is off by %v", off)
	}
}
