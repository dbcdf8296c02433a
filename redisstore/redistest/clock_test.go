package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore/redistest"
)

// The clock goes as the machine's until it is set, ahead or back, and is set at once. What
// is to expire goes by it.
func TestClock(t *testing.T) {
	server, set := redistest.WithClock(t)
	ctx := context.Background()
	within := func(ahead time.Duration) {
		t.Helper()
		set(ahead)
		from := time.Now().Add(ahead)
		says, err := server.Client().Time(ctx).Result()
		if to := time.Now().Add(ahead); err != nil || says.Before(from.Truncate(time.Microsecond)) || says.After(to) {
			t.Errorf("%v ahead: it says %v, %v, between %v and %v", ahead, says, err, from, to)
		}
	}
	within(0)
	within(-90 * time.Second)
	if err := server.Client().Set(ctx, "key", "value", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	within(90 * time.Second)
	if n, err := server.Client().Exists(ctx, "key").Result(); n != 0 || err != nil {
		t.Errorf("a key that has expired: %d, %v", n, err)
	}
	server.Restart()
	within(time.Hour)
}
