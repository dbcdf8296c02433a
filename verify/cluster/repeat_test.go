package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/verify"
)

// A step that is repeated after others have come in between takes nothing from what they
// have done, for as long as its receipt is kept.
func TestRepeatedAfterOthers(t *testing.T) {
	t.Parallel()
	now := int64(1_800_000_000_000)
	store, err := redisstore.Open(redisstore.Options{
		URL: redistest.Alone(t).URL(), Timeout: 20 * time.Second, Clock: func() int64 { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	book, ctx := New(store), context.Background()
	old, fresh := verify.Hash{1}, verify.Hash{2}
	for name, script := range map[string]*redisstore.Script{"check": checkScript, "forget": forgetScript} {
		step := newStep()
		repeat := func() byte {
			letter, err := book.step(ctx, name, name, script, string(old[:]), step)
			if err != nil {
				t.Fatal(err)
			}
			return letter
		}
		add := func(h verify.Hash) {
			if err := book.Add(ctx, name, h, verify.DefaultLifetime); err != nil {
				t.Fatal(err)
			}
		}
		add(old)
		first := repeat()
		add(fresh)
		add(old)
		now += 59_999
		if again := repeat(); first != done || again != done {
			t.Errorf("%s: %c, and repeated %c", name, first, again)
		}
		if result, err := book.Check(ctx, name, fresh); result != verify.Correct || err != nil {
			t.Errorf("%s: a code that was added in between is %v, %v", name, result, err)
		}
	}
}
