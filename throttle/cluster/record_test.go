package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
)

// What is recorded expires by the server's clock: a mailbox when its newest send has left,
// a meter's state an hour after it says nothing more.
func TestWhatIsRecordedExpires(t *testing.T) {
	server := redistest.Alone(t)
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	now := server.Client().Time(ctx).Val().UnixMilli()
	sent := throttle.Admission{ID: throttle.NewID(), At: now - 30_000}
	record := func(by throttle.Recorder) {
		t.Helper()
		if err := by.Record(ctx, "recorded", sent); err != nil {
			t.Fatal(err)
		}
	}
	record(limiter)
	if at := server.Client().PExpireTime(ctx, "mailgate:{}recorded").Val().Milliseconds(); at < sent.At+86_401_000 || at > sent.At+86_401_000+10_000 {
		t.Errorf("a mailbox expires %d ms after its send", at-sent.At)
	}
	for name, m := range threeMeters {
		record(limiter.Meter(name, m))
		key := "mailgate:" + name + "." + m.Form() + ":{}recorded"
		if left := server.Client().PTTL(ctx, key).Val(); name != "fixed" && (left < 59*time.Minute || left > 63*time.Minute) {
			t.Errorf("%s: expires in %v", name, left)
		}
	}
	admit(t, limiter, "recorded-after")
	if v, err := limiter.Take(ctx, "recorded", throttle.NewID()); err != nil || v.Allowed || v.RetryAt() != sent.At+60_000 {
		t.Errorf("taken after what was recorded: allowed %v, until %d, %v", v.Allowed, v.RetryAt()-sent.At, err)
	}
}
