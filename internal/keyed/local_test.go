package keyed_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/keyed/keyedtest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
)

func machineNow() int64 { return time.Now().UnixMilli() }

func openTable(t *testing.T, dir string) (*cache.Store, *cache.Table) {
	t.Helper()
	store := must.Get(cache.Open(cache.Options{Dir: dir, Now: machineNow}))(t)
	t.Cleanup(func() { _ = store.Close() })
	return store, store.Table("keyed")
}

func TestLocal_Suite_KeepsTheContract(t *testing.T) {
	for where, dir := range map[string]string{"Memory": "", "Disk": t.TempDir()} {
		t.Run(where, func(t *testing.T) {
			_, table := openTable(t, dir)
			keyedtest.Run(t, func() keyed.Store { return keyed.Local(table) })
		})
	}
}

func TestLocal_Closed_Unavailable(t *testing.T) {
	store, table := openTable(t, "")
	must.OK(t, store.Close())
	_, err := keyed.Local(table).Update(t.Context(), "k", func([]byte, int64) ([]byte, int64) { return nil, 0 })
	if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
}
