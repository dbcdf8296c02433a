package local

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// The keys on disk are a promise to data directories that are there already: the
// history of a mailbox is under the mailbox itself, as its limiter has no name.
func TestKeysOnDisk(t *testing.T) {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	limiter, err := New(disk, Options{Policy: throttle.DefaultPolicy(), Now: func() int64 { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	for key, by := range map[string]struct {
		limiter *Limiter
		mailbox string
	}{
		"a@example.com":                 {limiter, "a@example.com"},
		"net\x00a":                      {limiter, "net\x00a"},
		"\x00\x00net\x00a":              {limiter, "\x00net\x00a"},
		"\x00net\x00a":                  {limiter.Tiers("net", throttle.DefaultPolicy()), "a"},
		"\x00net\x00\x00a":              {limiter.Tiers("net", throttle.DefaultPolicy()), "\x00a"},
		"\x00%00net%2F%25\x00net\x00a":  {limiter.Tiers("\x00net/%", throttle.DefaultPolicy()), "net\x00a"},
		"\x00provider-quota_1\x00gmail": {limiter.Tiers("provider-quota_1", throttle.DefaultPolicy()), "gmail"},
	} {
		if _, err := by.limiter.Take(context.Background(), by.mailbox, throttle.NewID()); err != nil {
			t.Fatal(err)
		}
		if h, found, _, err := limiter.histories.Get(context.Background(), key, func() int64 { return noon }); !found || len(h) != 1 || err != nil {
			t.Errorf("nothing under %q, %v", key, err)
		}
	}
	limiter.Close()
}
