package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Prepare loads the scripts on every master and looks for settings under which Redis
// would forget. It returns a sentence for each. The limiter works without: a server
// that does not know a script is sent it when it is needed.
func (l *Limiter) Prepare(ctx context.Context) (warnings []string, err error) {
	ctx, end := l.store.deadlines.within(ctx, l.store.timeout)
	defer end()
	var mu sync.Mutex
	_, failed := l.store.redis.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		if err := load(ctx, master); err != nil {
			return err
		}
		found, err := forgetful(ctx, master)
		if err == nil && l.store.confirm > 0 {
			found, err = l.store.lonely(ctx, master, found)
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

func load(ctx context.Context, master *redis.Client) error {
	for _, s := range slices.Concat(tierScripts, meterScripts) {
		if err := master.ScriptLoad(ctx, s.source).Err(); err != nil {
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

// lonely adds a sentence when a master has too few replicas to confirm an admission.
func (s *store) lonely(ctx context.Context, master *redis.Client, warnings []string) ([]string, error) {
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

// Ready reports whether Redis takes writes, by a trial. A cluster is ready while any of
// its masters is: what lies on the others is answered with an error.
func (l *Limiter) Ready(ctx context.Context) error {
	ctx, end := l.store.deadlines.within(ctx, l.store.timeout)
	defer end()
	trials := 1
	if _, ok := l.store.redis.client.(*redis.ClusterClient); ok {
		trials = 16 // enough to meet more than one master
	}
	outcomes := make(chan error, trials)
	for i := range trials {
		// No mailbox begins with NUL.
		key := fmt.Sprintf("%s\x00trial%d", l.prefix, i)
		go func() { outcomes <- l.store.redis.client.Set(ctx, key, 1, time.Second).Err() }()
	}
	var err error
	for range trials {
		if err = <-outcomes; err == nil {
			return nil
		}
	}
	return unavailable("asking redis", err)
}
