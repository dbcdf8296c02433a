package suppression_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// warnings has what a store warns of.
type warnings struct {
	slog.Handler
	said chan string
}

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.said <- r.Message
	}
	return nil
}

// A change whose caller has gone is in force if it is kept, and only then.
func TestChange_CallerGone_InForceIfKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said := make(chan string, 10)
	now := func() int64 { return time.Now().UnixMilli() }
	store := must.Get(cache.Open(cache.Options{Dir: dir, Now: now, Log: slog.New(warnings{slog.Default().Handler(), said})}))(t)
	t.Cleanup(func() { _ = store.Close() })
	n := &node{t: t, List: must.Get(suppression.Open(t.Context(), suppression.Options{Table: store.Table("suppressions"), Events: store.Table("events"), Now: now}))(t)}
	t.Cleanup(n.Close)
	n.add("alice@example.com", suppression.Complaint)
	other := must.Get(sqlite.OpenConn(filepath.Join(dir, "history.db"), sqlite.OpenReadWrite))(t)
	t.Cleanup(func() { _ = other.Close() })
	locks := func(statement string) { must.OK(t, sqlitex.ExecuteTransient(other, statement, nil)) }
	lift := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := n.Lift(ctx, of(t, "alice@example.com"), suppression.Complaint); !errors.Is(err, throttle.ErrUnavailable) {
			t.Errorf("a removal that takes longer than its caller: %v", err)
		}
	}

	locks("BEGIN IMMEDIATE")
	lift()
	for text := range said {
		if text == "the data directory takes no writes" {
			break
		}
	}
	n.expect("alice@example.com", suppression.Complaint)
	lift()
	locks("ROLLBACK")
	servertest.Eventually(t, "the removal", func() bool { return len(n.has("alice@example.com")) == 0 })
}

// A list that could not do what it is for does not open.
func TestOpen_HalfMade_Refused(t *testing.T) {
	t.Parallel()
	store := must.Get(cache.Open(cache.Options{Now: func() int64 { return 1 }}))(t)
	t.Cleanup(func() { _ = store.Close() })
	for _, o := range []suppression.Options{{}, {Table: store.Table("suppressions")}, {Events: store.Table("events")}} {
		if _, err := suppression.Open(t.Context(), o); err == nil {
			t.Errorf("%v is a list", o)
		}
	}
}
