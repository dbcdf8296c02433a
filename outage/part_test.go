package outage_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
	codes "github.com/mailgate/mailgate/verify/local"
)

// While the part is away where a code or a request lies, the outage lasts, though other parts
// answer: it does not end and begin with each call.
func TestAPartIsAway(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, w *outage.Watch, disk *cache.Disk, way *line) (call func() error){
		"of the codes": func(t *testing.T, w *outage.Watch, disk *cache.Disk, way *line) func() error {
			book, err := codes.New(cachetest.Open(t, cache.Memory), codes.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(book.Close)
			there := &sharedBook{Book: book}
			there.set(dead)
			b := w.Book(there)
			return func() error {
				there.set(way.now())
				_, err := b.Check(context.Background(), alice, verify.Hash{1})
				return err
			}
		},
		"of the requests": func(t *testing.T, w *outage.Watch, disk *cache.Disk, way *line) func() error {
			now := clocktest.New(start).Now
			there := &sharedKeeper{Keeper: openOwnKeeper(t, cachetest.Open(t, cache.Memory), "there", terms, now)}
			k := w.Keeper("answers", terms, there, openOwnKeeper(t, disk, "own", terms, now))
			return func() error {
				there.set(way.now())
				_, err := k.Begin(context.Background(), idempotency.Name{Caller: "shop", Key: throttle.NewID().String()}, idempotency.Fingerprint{})
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			log, way, disk := new(journal), new(line), cachetest.Open(t, cache.Memory)
			w, err := outage.NewWatch(outage.Options{
				Disk: disk, Away: unavailableIsAway, Shared: func(context.Context) error { asked.Add(1); return nil },
				Now: func() int64 { return start }, Pause: time.Millisecond, Log: log.logger(),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeAtOnce(w) })
			call := open(t, w, disk, way)
			w.Start()
			way.set(dead)
			for range 3 {
				if err := call(); err != nil && !errors.Is(err, errDead) {
					t.Fatal(err)
				}
				before := asked.Load()
				servertest.Eventually(t, "some questions", func() bool { return asked.Load() > before+3 })
			}
			if s, lines := w.State(), log.lines("is away"); !s.Degraded || len(lines) != 1 {
				t.Errorf("%+v, and the log has %q", s, lines)
			}
			way.set(none)
			if err := call(); err != nil {
				t.Fatal(err)
			}
			awaitHealth(t, w)
		})
	}
}
