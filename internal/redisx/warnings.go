package redisx

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Warnings asks every master for settings under which Redis would lose or refuse writes, and
// returns one sentence for each. Confirm is Options.Confirm.
func Warnings(ctx context.Context, client redis.UniversalClient, confirm int) (warnings []string, err error) {
	masters, err := Masters(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("asking Redis for its settings: %w", err)
	}
	for _, master := range masters {
		found, err := warningsOf(ctx, master, confirm)
		if err != nil {
			return nil, fmt.Errorf("asking Redis at %s for its settings: %w", master.Options().Addr, err)
		}
		warnings = append(warnings, found...)
	}
	slices.Sort(warnings)
	return slices.Compact(warnings), nil
}

func warningsOf(ctx context.Context, master *redis.Client, confirm int) (warnings []string, err error) {
	warn := func(format string, values ...any) { warnings = append(warnings, fmt.Sprintf(format, values...)) }
	info, err := master.InfoMap(ctx, "server", "replication").Result()
	if err != nil {
		return nil, err
	}
	if version := info["Server"]["redis_version"]; olderThan62(version) {
		warn("Redis is version %s; 6.2 or later is needed", version)
	}
	switch all, online := replicasOf(info); {
	case online < confirm:
		warn("a Redis master has %d replicas and %d must confirm: until it has them, no email is sent", online, confirm)
	case all > confirm && confirm > 0:
		warn("a Redis master has %d replicas and %d must confirm: a failover can promote one that lacks sends; set MAILGATE_REDIS_CONFIRM to the number of replicas", all, confirm)
	}
	settings := map[string]string{}
	for _, name := range []string{"maxmemory-policy", "appendonly", "save"} {
		values, err := master.ConfigGet(ctx, name).Result()
		if IsReply(err) {
			warn("Redis does not let its settings be read: make sure that maxmemory-policy is noeviction")
			return warnings, nil
		}
		if err != nil {
			return nil, err
		}
		settings[name] = values[name]
	}
	if policy := settings["maxmemory-policy"]; policy != "noeviction" {
		warn("Redis runs with maxmemory-policy %s and may forget mailboxes: set noeviction", policy)
	}
	if settings["appendonly"] != "yes" && settings["save"] == "" {
		warn("Redis stores nothing on disk and loses every mailbox when it restarts: set appendonly yes")
	}
	return warnings, nil
}

// replicasOf returns how many replicas a master has, and how many of them are in sync.
func replicasOf(info map[string]map[string]string) (all, online int) {
	for field, value := range info["Replication"] {
		if strings.HasPrefix(field, "slave") && strings.Contains(value, "state=") {
			all++
			if strings.Contains(value, "state=online") {
				online++
			}
		}
	}
	return all, online
}

func olderThan62(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major < 6 || major == 6 && minor < 2
}
