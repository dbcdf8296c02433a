package outage

import (
	"context"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/local"
)

// A gone keeper is never there.
type gone struct{ idempotency.Keeper }

func (gone) Begin(context.Context, idempotency.Name, idempotency.Fingerprint) (idempotency.Outcome, error) {
	return idempotency.Outcome{}, idempotency.ErrUnavailable
}

// What was begun alone and never ends, as a mark does not, is not remembered for good.
func TestBegunAndNeverEnded(t *testing.T) {
	disk, now, terms := cachetest.Open(t, cache.Memory), int64(0), idempotency.Terms{Lease: 100, Keep: 100}
	clock := func() int64 { return now }
	own, err := local.New(disk, local.Options{Terms: terms, Name: "own", Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	w, err := NewWatch(Options{Disk: disk, Kept: true, Shared: func(context.Context) error { return nil }, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	k, most := w.Keeper("marks", terms, gone{}, own), 0
	for now = range int64(1000) {
		name := idempotency.Name{Caller: "shop", Key: fmt.Sprint(now)}
		if o, err := k.Begin(context.Background(), name, idempotency.Fingerprint{}); err != nil || o.State != idempotency.Started {
			t.Fatal(o.State, err)
		}
		most = max(most, remembered(k))
	}
	if most <= 100 || most > 200 { // those of up to two leases
		t.Errorf("%d are remembered at once, of 100 that are under way", most)
	}
}

func remembered(k *Keeper) (n int) {
	k.begun.Range(func(any, any) bool { n++; return true })
	return n
}
