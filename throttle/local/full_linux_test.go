package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A real file system runs full under load. No admission is a yes then, what is known
// is still answered, the process lives, and all is well once there is room again.
func TestFullDisk(t *testing.T) {
	servertest.OnDisk(t, "size=96m", func(dir string) { fillUnderLoad(t, dir) })
}

func fillUnderLoad(t *testing.T, dir string) {
	data, filler := filepath.Join(dir, "data"), filepath.Join(dir, "filler")
	disk, err := cache.Open(cache.DiskOptions{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	now := func() int64 { return noon }
	options := local.Options{Policy: throttle.DefaultPolicy(), Size: small, Now: now}
	limiter, err := local.New(disk, options)
	if err != nil {
		t.Fatal(err)
	}

	if err := limiter.Ready(context.Background()); err != nil {
		t.Errorf("ready on an empty disk: %v", err)
	}
	load := newLoad(limiter)
	load.until(t, func() bool { return load.admitted.Load() > 5000 })
	servertest.Fill(t, filler)
	load.until(t, func() bool { return load.refused.Load() > 1000 })
	load.stop(t)

	v, err := limiter.Take(context.Background(), "late@example.com", throttle.NewID())
	if v.Allowed || !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrFull) || !errors.Is(err, throttle.ErrUnchanged) {
		t.Errorf("take on a full disk: allowed %t, %v", v.Allowed, err)
	}
	if err := limiter.Ready(context.Background()); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrFull) {
		t.Errorf("ready on a full disk: %v", err)
	}
	checkKnown(t, limiter, load)
	if err := disk.Close(); !errors.Is(err, cache.ErrFull) {
		t.Errorf("close on a full disk: %v", err)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	admitsAgain(t, limiter)
	limiter.Close()
	if err := disk.Close(); err != nil {
		t.Errorf("close once there is room: %v", err)
	}

	servertest.Fill(t, filler)
	if _, err := cache.Open(cache.DiskOptions{Dir: data}); !errors.Is(err, cache.ErrFull) {
		t.Errorf("open on a full disk: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if disk, err = cache.Open(cache.DiskOptions{Dir: data}); err != nil {
		t.Fatal(err)
	}
	if limiter, err = local.New(disk, options); err != nil {
		t.Fatal(err)
	}
	checkKnown(t, limiter, load)
	limiter.Close()
	if err := disk.Close(); err != nil {
		t.Error(err)
	}
	fmt.Printf("%d admitted, %d refused\n", load.admitted.Load(), load.refused.Load())
}

// checkKnown expects each mailbox that was admitted to be denied, by Take and Peek.
func checkKnown(t *testing.T, limiter throttle.Historian, load *load) {
	t.Helper()
	load.mailboxes.Range(func(mailbox, id any) bool {
		v, err := limiter.Take(context.Background(), mailbox.(string), throttle.NewID())
		if err != nil || v.Allowed {
			t.Errorf("take for a known mailbox: allowed %t, %v", v.Allowed, err)
		}
		p, err := limiter.Peek(context.Background(), mailbox.(string))
		if err != nil || p.Allowed {
			t.Errorf("peek at a known mailbox: allowed %t, %v", p.Allowed, err)
		}
		return !t.Failed()
	})
}

// admitsAgain expects the limiter to say that it is ready, and then to be.
func admitsAgain(t *testing.T, limiter *local.Limiter) {
	t.Helper()
	servertest.Await(t, "room again", 10*time.Second, func() error { return limiter.Ready(context.Background()) })
	v, err := limiter.Take(context.Background(), "late@example.com", throttle.NewID())
	if err != nil || !v.Allowed {
		t.Fatalf("with room again: allowed %t, %v", v.Allowed, err)
	}
}

// load admits new mailboxes from several goroutines until it is stopped.
type load struct {
	admitted, refused atomic.Int64
	mailboxes         sync.Map
	wrong             atomic.Pointer[error] // neither admitted nor full
	quit              chan struct{}
	done              sync.WaitGroup
}

func newLoad(limiter throttle.Historian) *load {
	l := &load{quit: make(chan struct{})}
	for caller := range 8 {
		l.done.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.quit:
					return
				default:
					l.take(limiter, fmt.Sprintf("user%d-%d@example.com", caller, n))
				}
			}
		})
	}
	return l
}

func (l *load) take(limiter throttle.Historian, mailbox string) {
	v, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
	switch {
	case err == nil && v.Allowed:
		l.admitted.Add(1)
		l.mailboxes.Store(mailbox, true)
	case errors.Is(err, cache.ErrFull) && !v.Allowed:
		l.refused.Add(1)
	default:
		err = fmt.Errorf("take: allowed %t, %w", v.Allowed, err)
		l.wrong.Store(&err)
	}
}

func (l *load) until(t *testing.T, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !reached(); time.Sleep(time.Millisecond) {
		if err := l.wrong.Load(); err != nil {
			t.Fatal(*err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d admitted, %d refused", l.admitted.Load(), l.refused.Load())
		}
	}
}

func (l *load) stop(t *testing.T) {
	t.Helper()
	close(l.quit)
	l.done.Wait()
	if err := l.wrong.Load(); err != nil {
		t.Fatal(*err)
	}
}
