package local_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

func TestOptionsThatWillNotDo(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	for name, o := range map[string]local.Options{
		"no policy":    {},
		"half a size":  {Policy: throttle.DefaultPolicy(), Size: cache.Size{Entries: 1}},
		"a NUL inside": {Policy: throttle.DefaultPolicy(), Name: "a\x00b"},
	} {
		t.Run(name, func(t *testing.T) {
			if l, err := local.New(disk, o); err == nil {
				l.Close()
				t.Fatal("opened")
			}
		})
	}
	if _, err := local.New(nil, local.Options{Policy: throttle.DefaultPolicy()}); err == nil {
		t.Error("a limiter without a disk")
	}
	if _, err := local.NewMeters(nil, local.MetersOptions{}); err == nil {
		t.Error("meters without a disk")
	}
}

// After Close, and after the disk was closed, each call is unavailable, says why and
// does not name the mailbox.
func TestClosed(t *testing.T) {
	const mailbox = "alice@example.com"
	for name, closing := range map[string]func(*local.Limiter, *cache.Disk) error{
		"limiter": func(l *local.Limiter, _ *cache.Disk) error { l.Close(); return nil },
		"disk":    func(_ *local.Limiter, d *cache.Disk) error { return d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			disk := cachetest.Open(t, cache.Memory)
			limiter := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy()})
			if err := closing(limiter, disk); err != nil {
				t.Fatal(err)
			}
			errs := callsOf(limiter, mailbox)
			_, errs["history"] = limiter.History(context.Background(), mailbox)
			errs["ready"] = limiter.Ready(context.Background())
			for call, err := range errs {
				if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) || strings.Contains(err.Error(), "alice") {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// Asking whether it is ready is no send: no mailbox is charged, not even one of a
// strange name.
func TestReadyChargesNobody(t *testing.T) {
	limiter := openLimiter(t, cachetest.Open(t, cache.Memory), local.Options{Policy: throttle.DefaultPolicy()})
	ctx := context.Background()
	if err := limiter.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	for _, mailbox := range []string{"ready", "readiness", "\x00", "\x00trial"} {
		if v, err := limiter.Take(ctx, mailbox, throttle.NewID()); !v.Allowed || err != nil {
			t.Errorf("%q: allowed %t, %v", mailbox, v.Allowed, err)
		}
	}
	if err := limiter.Ready(ctx); err != nil {
		t.Error(err)
	}
}

// Whoever has stopped waiting is told so, and is not kept.
func TestReadyInVain(t *testing.T) {
	limiter := openLimiter(t, cachetest.Open(t, cache.Memory), local.Options{Policy: throttle.DefaultPolicy()})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := limiter.Ready(ctx); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Two limiters on one disk count apart by their names.
func TestNamesCountApart(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	mailboxes := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy()})
	addresses := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy(), Name: "client-ip"})
	for _, limiter := range []*local.Limiter{mailboxes, addresses} {
		for _, want := range []bool{true, false} {
			v, err := limiter.Take(context.Background(), "192.0.2.1", throttle.NewID())
			if err != nil || v.Allowed != want {
				t.Fatalf("allowed %t, %v; want %t", v.Allowed, err, want)
			}
		}
	}
}

// Two limiters of one name would each remember what the other has changed.
func TestANameIsForOne(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	first, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy()}); err == nil {
		t.Error("a second limiter of the same name was opened")
	}
	first.Close()
	openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy()})
}

// A denial of a mailbox that is remembered takes no memory.
func TestDenialsAreFree(t *testing.T) {
	policy := throttle.DefaultPolicy()
	limiter := openLimiter(t, cachetest.Open(t, cache.Memory), local.Options{Policy: policy})
	const mailbox = "a.mailbox.as.long.as.they.are@mail.example.com"
	ctx, id := context.Background(), throttle.NewID()
	for name, by := range map[string]throttle.Limiter{"its own": limiter, "a rule's": limiter.Tiers("a-rule", policy)} {
		for range 2 {
			if _, err := by.Take(ctx, mailbox, throttle.NewID()); err != nil {
				t.Fatal(err)
			}
		}
		allocs := testing.AllocsPerRun(10_000, func() {
			if v, err := by.Take(ctx, mailbox, id); v.Allowed || err != nil {
				t.Fatalf("allowed %t, %v", v.Allowed, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations for a denial", name, allocs)
		}
	}
}
