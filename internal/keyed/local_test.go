package keyed_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/keyed/keyedtest"
	"github.com/mailgate/mailgate/throttle"
)

func machineNow() int64 { return time.Now().UnixMilli() }

func openTable(t *testing.T, dir string, now func() int64) (*cache.Store, *cache.Table) {
	t.Helper()
	store, err := cache.Open(cache.Options{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, store.Table("keyed")
}

func TestLocal_Suite_KeepsTheContract(t *testing.T) {
	for where, dir := range map[string]string{"Memory": "", "Disk": t.TempDir()} {
		t.Run(where, func(t *testing.T) {
			_, table := openTable(t, dir, machineNow)
			keyedtest.Run(t, func() keyed.Store { return keyed.Local(table, machineNow) })
		})
	}
}

func TestLocal_ValueExpires_ToTheMillisecond(t *testing.T) {
	now := int64(1_800_000_000_000)
	_, table := openTable(t, t.TempDir(), func() int64 { return now })
	s := keyed.Local(table, func() int64 { return now })
	var seen []byte
	look := func(old []byte, _ int64) ([]byte, int64) { seen = old; return old, 1_800_000_000_100 }
	if _, err := s.Update(t.Context(), "k", func([]byte, int64) ([]byte, int64) { return []byte("a"), now + 100 }); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a", ""} { // in this order, as the second look removes the value
		now = 1_800_000_000_099 + int64(i)
		if _, err := s.Update(t.Context(), "k", look); err != nil || string(seen) != want {
			t.Errorf("at %d the value is %q, want %q; %v", now, seen, want, err)
		}
	}
}

func TestLocal_Closed_Unavailable(t *testing.T) {
	store, table := openTable(t, "", machineNow)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := keyed.Local(table, machineNow).Update(t.Context(), "k", func([]byte, int64) ([]byte, int64) { return nil, 0 })
	if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
}
