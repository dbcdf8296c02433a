package local_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A process starts with a clock that is years wrong. Back, it counts as the newest send on
// record: no window reopens and no wait grows. Ahead, the windows have passed; when the
// clock is right again, what was admitted meanwhile counts as sent just now.
func TestClockThatIsWrongAtTheStart(t *testing.T) {
	const year = 365 * 86_400_000
	const sent = int64(60 * year)
	dir := t.TempDir()
	for i, step := range []struct {
		now   int64
		look  string // "admits" or the wait
		takes bool
	}{
		{sent, "admits", true},
		{sent - 10*year, "minute 60000", false},
		{0, "minute 60000", false},
		{sent + 59_999, "minute 1", false},
		{sent + 60_000, "admits", true},
		{sent + 10*year, "admits", true},
		{sent + 70_000, "minute 60000", false},
	} {
		disk, err := cache.Open(cache.DiskOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		l, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy(), Now: func() int64 { return step.now }})
		if err != nil {
			t.Fatal(err)
		}
		v, err := l.Peek(context.Background(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		look := "admits"
		if !v.Allowed {
			look = fmt.Sprint(v.Limit, " ", v.Wait)
		}
		if look != step.look {
			t.Errorf("step %d: %s, want %s", i, look, step.look)
		}
		if step.takes {
			if v, err := l.Take(context.Background(), "alice", throttle.NewID()); err != nil || !v.Allowed {
				t.Errorf("step %d: %v, %v", i, v, err)
			}
		}
		l.Close()
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
