package timeout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/timeout"
)

func TestFrom_OneParentWithinAHundredth_IsShared(t *testing.T) {
	parent, began := t.Context(), time.Now()
	g := timeout.Group{Length: time.Hour}
	first := g.From(parent, began)
	if end, _ := first.Deadline(); !end.Equal(began.Add(time.Hour)) {
		t.Errorf("it ends at %v, want an hour after %v", end, began)
	}
	for _, tt := range []struct {
		parent context.Context
		after  time.Duration
		shared bool
	}{
		{parent, 36 * time.Second, true},
		{parent, -time.Millisecond, false}, // it would last longer than the length
		{parent, 37 * time.Second, false},
		{context.Background(), 37 * time.Second, false},
	} {
		before := g.From(parent, began)
		if got := g.From(tt.parent, began.Add(tt.after)); (got == before) != tt.shared {
			t.Errorf("after %v: shared is %t", tt.after, !tt.shared)
		}
	}
}

func TestFrom_ItsTimeOrItsParentEnds_Ends(t *testing.T) {
	late := errors.New("late")
	parent, cancel := context.WithCancelCause(t.Context())
	g := timeout.Group{Length: time.Hour, Cause: late}
	over := g.From(parent, time.Now().Add(-time.Hour))
	if <-over.Done(); context.Cause(over) != late {
		t.Errorf("the cause is %v", context.Cause(over))
	}
	ctx, gone := g.From(parent, time.Now()), errors.New("gone")
	if ctx.Err() != nil {
		t.Errorf("it begins as ended: %v", ctx.Err())
	}
	cancel(gone)
	if <-ctx.Done(); context.Cause(ctx) != gone {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

// Calls of several parents alternate, and one that began long ago comes between them.
func TestFrom_SeveralParents_EachIsShared(t *testing.T) {
	g, began := timeout.Group{Length: time.Hour}, time.Now()
	var parents, first []context.Context
	for range 3 {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		parents, first = append(parents, parent), append(first, g.From(parent, began))
	}
	for i, parent := range parents {
		g.From(parent, began.Add(-time.Minute))
		if g.From(context.WithValue(parent, &g, i), began.Add(time.Second)) != first[i] {
			t.Errorf("parent %d has another context", i)
		}
	}
}
