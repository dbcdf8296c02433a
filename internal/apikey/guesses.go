package apikey

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// Guesses counts the wrong keys that came from each address, through all doors of a node.
type Guesses struct{ limiter *throttle.Limiter }

const (
	guessBurst  = 4        // seconds' worth of guesses that may come at once
	guessMemory = 16 << 20 // for the counts of all addresses
)

// NewGuesses makes Guesses that are too many beyond a number in a second.
func NewGuesses(perSecond int, now func() int64) (*Guesses, error) {
	bucket, err := throttle.NewTokenBucket(throttle.Tier{Name: "per-second", Limit: perSecond, Window: time.Second}, guessBurst*perSecond)
	if err != nil {
		return nil, fmt.Errorf("limiting wrong keys: %w", err)
	}
	memory, err := cache.Open(cache.Options{Bytes: guessMemory, Now: now})
	if err != nil {
		return nil, fmt.Errorf("limiting wrong keys: %w", err)
	}
	return &Guesses{local.New(memory.Table("wrong-keys"), bucket)}, nil
}

// Count counts a wrong key of an address. The verdict says whether there were too many.
func (g *Guesses) Count(ctx context.Context, from netip.Addr) (throttle.Verdict, error) {
	return g.limiter.Take(ctx, "address "+network.Visitor(from))
}

// Spent counts a wrong key of an address, and reports whether there were too many.
func (g *Guesses) Spent(ctx context.Context, from netip.Addr) bool {
	v, err := g.Count(ctx, from)
	return err == nil && !v.Allowed
}
