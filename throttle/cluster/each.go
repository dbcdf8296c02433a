package cluster

import (
	"context"
	"hash/maphash"
	"strings"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/redis/go-redis/v9"
)

// scanStep is how many keys a server scans before it answers other calls.
const scanStep = 512

// Each implements throttle.Home, for the form of a Policy. It goes through the keys of one master
// after the other in small steps, and only reads. States that come or go meanwhile may be
// among them or not.
func (h *home) Each(ctx context.Context, visit func(key string, state []byte, now int64) bool) error {
	masters, err := redisx.Masters(ctx, h.client)
	if err != nil {
		return err
	}
	visited, seed := map[uint64]bool{}, maphash.MakeSeed() // SCAN may name a key again
	for _, master := range masters {
		for cursor := uint64(0); ; {
			keys, next, err := master.ScanType(ctx, cursor, literal(h.prefix)+"*", scanStep, "zset").Result()
			if err != nil {
				return err
			}
			var fresh []string
			for _, key := range keys {
				if hash := maphash.String(seed, key); !visited[hash] {
					visited[hash] = true
					fresh = append(fresh, key)
				}
			}
			states, now, err := h.read(ctx, fresh)
			if err != nil {
				return err
			}
			for i, state := range states {
				if !visit(strings.TrimSuffix(strings.TrimPrefix(fresh[i], h.prefix), "}"), state, now) {
					return nil
				}
			}
			if cursor = next; next == 0 {
				break
			}
		}
	}
	return nil
}

// read returns the states under these keys, and the clock.
func (h *home) read(ctx context.Context, keys []string) (states [][]byte, now int64, err error) {
	if len(keys) == 0 {
		return nil, 0, nil
	}
	entries := make([]*redis.StringSliceCmd, len(keys))
	var clock *redis.TimeCmd
	_, err = h.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			entries[i] = p.ZRange(ctx, key, 0, -1)
		}
		clock = p.Time(ctx)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		states = append(states, []byte(strings.Join(e.Val(), "")))
	}
	return states, clock.Val().UnixMilli(), nil
}

// literal returns a text as a pattern that only it matches.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
