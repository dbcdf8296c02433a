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

// Prepare looks on every master for settings under which Redis would forget, and loads the
// scripts in use. It returns a sentence for each such setting. All works without: a server
// that does not know a script is sent it when it is needed. Each master is asked twice,
// which may take twice Options.Timeout.
func (s *Store) Prepare(ctx context.Context) (warnings []string, err error) {
	scripts := s.used()
	var mu sync.Mutex
	failed := s.redis.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		found, err := s.look(ctx, master)
		mu.Lock()
		warnings = append(warnings, found...)
		mu.Unlock()
		if err != nil {
			return err
		}
		return s.load(ctx, master, scripts)
	})
	slices.Sort(warnings)
	if err := errors.Join(failed...); err != nil {
		return warnings, s.unavailable(ctx, "preparing redis", err)
	}
	return slices.Compact(warnings), nil
}

func (s *Store) load(ctx context.Context, master *redis.Client, scripts []*Script) error {
	ctx, end := s.within(ctx)
	defer end()
	_, err := master.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, script := range scripts {
			p.ScriptLoad(ctx, script.source)
		}
		return nil
	})
	return err
}

// look asks a master for its settings, and its replicas where they have to confirm.
func (s *Store) look(ctx context.Context, master *redis.Client) (warnings []string, err error) {
	ctx, end := s.within(ctx)
	defer end()
	settings := map[string]*redis.MapStringStringCmd{"maxmemory-policy": nil, "appendonly": nil, "save": nil}
	var replication *redis.StringCmd
	_, failed := master.Pipelined(ctx, func(p redis.Pipeliner) error {
		for name := range settings {
			settings[name] = p.ConfigGet(ctx, name)
		}
		replication = p.Info(ctx, "replication")
		return nil
	})
	warnings, err = forgetful(settings, failed)
	if err == nil && s.confirm > 0 {
		warnings, err = s.lonely(replication, warnings)
	}
	return warnings, err
}

// forgetful finds settings under which a server would forget. Each answer has its own error.
// Failed is the error of all, and the only one where the server could not be asked.
func forgetful(settings map[string]*redis.MapStringStringCmd, failed error) (warnings []string, err error) {
	value, asked := map[string]string{}, failed == nil
	for name, answer := range settings {
		values, err := answer.Result()
		if err != nil && !isReply(err) {
			return nil, err
		}
		text, told := values[name]
		if told {
			value[name] = text
		}
		asked = asked || told || err != nil
	}
	if !asked {
		return nil, failed
	}
	switch policy, told := value["maxmemory-policy"]; {
	case !told:
		warnings = append(warnings, "redis does not let its settings be read: make sure that maxmemory-policy is noeviction")
	case policy != "noeviction":
		warnings = append(warnings, fmt.Sprintf("redis runs with maxmemory-policy %s and may forget mailboxes: set noeviction", policy))
	}
	if kept, told := value["appendonly"]; told && kept != "yes" && value["save"] == "" {
		warnings = append(warnings, "redis keeps nothing on disk and forgets every mailbox when it restarts: set appendonly yes")
	}
	return warnings, nil
}

// lonely adds a sentence when a master has too few replicas to confirm a write.
func (s *Store) lonely(replication *redis.StringCmd, warnings []string) ([]string, error) {
	info, err := replication.Result()
	if err != nil {
		return warnings, err
	}
	online := strings.Count(info, "state=online")
	if online >= s.confirm {
		return warnings, nil
	}
	return append(warnings, fmt.Sprintf("a redis master has %d replicas and %d must confirm: until it has, no mail is sent", online, s.confirm)), nil
}

func (s *Store) unavailable(asker context.Context, doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, s.told(asker, cause))
}
