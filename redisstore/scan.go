package redisstore

import (
	"context"
	"errors"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// scanStep is how many keys a server looks at before it lets others have their turn.
const scanStep = 512

// SortedSets goes through the keys of sorted sets that begin with the prefix, on every
// master, until visit returns false; visit is handed some at a time, never two at once, and
// no key twice. Keys that come or go meanwhile may be among them or not. It may be slow
// where there is much else: bound it with ctx.
func (s *Store) SortedSets(ctx context.Context, prefix string, visit func(keys []string) bool) error {
	var mu sync.Mutex
	enough, met := false, newMet()
	failed := s.redis.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		for cursor := uint64(0); ; {
			keys, next, err := master.ScanType(ctx, cursor, literal(prefix)+"*", scanStep, "zset").Result()
			if err != nil {
				return err
			}
			mu.Lock()
			if fresh := met.fresh(keys); !enough && len(fresh) > 0 {
				enough = !visit(fresh)
			}
			over := enough || next == 0
			mu.Unlock()
			if over {
				return nil
			}
			cursor = next
		}
	})
	if enough {
		return nil // what failed elsewhere was not needed
	}
	if err := errors.Join(failed...); err != nil {
		return s.unavailable(ctx, "going through redis", err)
	}
	return nil
}

// A met knows which keys a walk has met, by 64 bits of each: there may be millions. In a
// million the chance that one is taken for another, and left out, is one in 30 million.
type met struct {
	seed maphash.Seed
	keys map[uint64]struct{}
}

func newMet() *met { return &met{maphash.MakeSeed(), map[uint64]struct{}{}} }

// fresh are the keys that were not met before. Redis may name one again.
func (m *met) fresh(keys []string) (fresh []string) {
	for _, key := range keys {
		bits := maphash.String(m.seed, key)
		if _, found := m.keys[bits]; !found {
			m.keys[bits] = struct{}{}
			fresh = append(fresh, key)
		}
	}
	return fresh
}

// literal is a text as a pattern that only it fits.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
