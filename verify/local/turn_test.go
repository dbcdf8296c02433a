package local_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/local"
)

// A code that had to wait for its turn lives as long as one that had not, and no guess is
// judged by the time at which somebody began to wait.
func TestDatedWhenItsTurnComes(t *testing.T) {
	s := cachetest.NewStall(t, noon, 1)
	book := openBook(t, cachetest.Open(t, cache.Memory), local.Options{Now: s.Now})
	early, late := verify.Hash([]byte("a hash of a code")), verify.Hash([]byte("a hash of another"))
	added := make(chan error, 2)
	add := func(ctx context.Context, h verify.Hash) { added <- book.Add(ctx, alice.Mailbox, h, 30_000) }
	go add(context.Background(), early)
	s.Kept(t)
	second := cachetest.NewWaiter(context.Background())
	go add(second, late)
	second.Waits(t)
	s.Pass(30_000)
	s.End()
	for range 2 {
		if err := <-added; err != nil {
			t.Fatal(err)
		}
	}
	s.Pass(29_999)
	if result, err := book.Check(context.Background(), alice.Mailbox, late); result != verify.Correct || err != nil {
		t.Errorf("1 ms before its end: %v, %v", result, err)
	}
}

// Who waits for a mailbox that another has gives up when his context ends.
func TestNobodyWaitsBeyondItsContext(t *testing.T) {
	s := cachetest.NewStall(t, noon, 1)
	book := openBook(t, cachetest.Open(t, cache.Memory), local.Options{Now: s.Now})
	hash := verify.Hash([]byte("a hash of a code"))
	first := make(chan error, 1)
	go func() { first <- book.Add(context.Background(), alice.Mailbox, hash, 30_000) }()
	s.Kept(t)
	cachetest.LetGo(t, map[string]func(ctx context.Context) error{
		"add":    func(ctx context.Context) error { return book.Add(ctx, alice.Mailbox, hash, 30_000) },
		"check":  func(ctx context.Context) error { _, err := book.Check(ctx, alice.Mailbox, hash); return err },
		"remove": func(ctx context.Context) error { return book.Remove(ctx, alice.Mailbox, hash) },
		"forget": func(ctx context.Context) error { return book.Forget(ctx, alice.Mailbox) },
	}, verify.ErrUnavailable)
	s.End()
	if err := <-first; err != nil {
		t.Error(err)
	}
}
