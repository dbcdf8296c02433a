package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// ErrUnavailable is the kind of what Prepare and Ready return when Redis does not answer,
// or does not take what it is sent.
var ErrUnavailable = errors.New("redis is unavailable")

// Prepare loads the scripts in use on every master and looks for settings under which
// Redis would forget. It returns a sentence for each. All works without: a server that
// does not know a script is sent it when it is needed.
func (s *Store) Prepare(ctx context.Context) (warnings []string, err error) {
	ctx, end := s.deadlines.within(ctx, s.timeout)
	defer end()
	scripts := s.used()
	var mu sync.Mutex
	_, failed := s.redis.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		if err := load(ctx, master, scripts); err != nil {
			return err
		}
		found, err := forgetful(ctx, master)
		if err == nil && s.confirm > 0 {
			found, err = s.lonely(ctx, master, found)
		}
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, found...)
		return err
	})
	slices.Sort(warnings)
	if err := errors.Join(failed...); err != nil {
		return warnings, unavailable("preparing redis", err)
	}
	return slices.Compact(warnings), nil
}

func load(ctx context.Context, master *redis.Client, scripts []*Script) error {
	for _, script := range scripts {
		if err := master.ScriptLoad(ctx, script.source).Err(); err != nil {
			return err
		}
	}
	return nil
}

// forgetful looks for settings under which a server would forget.
func forgetful(ctx context.Context, master *redis.Client) (warnings []string, err error) {
	settings := map[string]string{}
	for _, name := range []string{"maxmemory-policy", "appendonly", "save"} {
		values, err := master.ConfigGet(ctx, name).Result()
		if isReply(err) {
			return []string{"redis does not let its settings be read: make sure that maxmemory-policy is noeviction"}, nil
		}
		if err != nil {
			return nil, err
		}
		settings[name] = values[name]
	}
	if policy := settings["maxmemory-policy"]; policy != "noeviction" {
		warnings = append(warnings, fmt.Sprintf("redis runs with maxmemory-policy %s and may forget mailboxes: set noeviction", policy))
	}
	if settings["appendonly"] != "yes" && settings["save"] == "" {
		warnings = append(warnings, "redis keeps nothing on disk and forgets every mailbox when it restarts: set appendonly yes")
	}
	return warnings, nil
}

// lonely adds a sentence when a master has too few replicas to confirm a write.
func (s *Store) lonely(ctx context.Context, master *redis.Client, warnings []string) ([]string, error) {
	info, err := master.Info(ctx, "replication").Result()
	if err != nil {
		return warnings, err
	}
	online := strings.Count(info, "state=online")
	if online >= s.confirm {
		return warnings, nil
	}
	return append(warnings, fmt.Sprintf("a redis master has %d replicas and %d must confirm: until it has, no mail is sent", online, s.confirm)), nil
}

func unavailable(doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, withoutWords(cause))
}
