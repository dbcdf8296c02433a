package api_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/rules"
)

// records are all keys of a Redis, each with its bytes and the moment it is forgotten at.
func records(t *testing.T, redis *redistest.Server) map[string]string {
	t.Helper()
	all, ctx, client := map[string]string{}, context.Background(), redis.Client()
	for _, key := range must(client.Keys(ctx, "*").Result())(t) {
		all[key] = fmt.Sprintf("%x until %d", must(client.Dump(ctx, key).Result())(t), must(client.PExpireTime(ctx, key).Result())(t))
	}
	return all
}

// sharedWays limit by each algorithm, with room for so many at once and then one more after
// a while.
func sharedWays(t *testing.T, shared *cluster.Limiter, meters *cluster.Meters) []func(name string, room int) rules.Rule {
	hour := func(limit int) throttle.Tier { return tier("hour", limit, 3_600_000) }
	counted := func(name string, m meter.Meter) rules.Rule {
		_, queues := m.(meter.LeakyBucket)
		return rules.Rule{Name: name, Limiter: meters.Limiter(name, m), Queues: queues}
	}
	return []func(string, int) rules.Rule{
		func(name string, room int) rules.Rule {
			return rules.Rule{Name: name, Limiter: shared.Tiers(name, must(throttle.NewPolicy(hour(room)))(t))}
		},
		func(name string, room int) rules.Rule {
			return counted(name, must(meter.NewFixedWindow(hour(room)))(t))
		},
		func(name string, room int) rules.Rule {
			return counted(name, must(meter.NewSlidingWindow(hour(room), 60))(t))
		},
		func(name string, room int) rules.Rule {
			return counted(name, must(meter.NewTokenBucket(hour(1), room))(t))
		},
		func(name string, room int) rules.Rule {
			return counted(name, must(meter.NewLeakyBucket(hour(1), room-1))(t))
		},
	}
}

// beside are rules that have so much room each, in Redis: the mailbox's, and beside it one
// by each algorithm, whose turn it is to count by the next trait at each step.
func beside(t *testing.T, store *redisstore.Store, by []rules.By, room map[rules.By]int, step int) *rules.Set {
	t.Helper()
	shared := must(cluster.New(store, must(throttle.NewPolicy(tier("hour", room[rules.ByMailbox], 3_600_000)))(t)))(t)
	all := []rules.Rule{{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: shared}}
	ways := sharedWays(t, shared, must(cluster.NewMeters(store))(t))
	for i, by := range by {
		rule := ways[(i+step)%len(ways)](string(by), room[by])
		rule.By = by
		all = append(all, rule)
	}
	return must(rules.New(rules.Options{Remote: true}, all...))(t)
}

// A no by one rule leaves all others alone in Redis as well, each in its turn and each time
// by another algorithm, beside all of them: every byte of every key, and the moment it is
// forgotten at.
func TestARefusalLeavesTheOthersAloneInRedis(t *testing.T) {
	by := []rules.By{rules.ByClientIP, rules.ByDomain, rules.ByAPIKey, rules.ByTemplate, rules.ByAll}
	for i, refusing := range append(slices.Clone(by), rules.ByMailbox) {
		t.Run(string(refusing), func(t *testing.T) {
			room := map[rules.By]int{rules.ByMailbox: 9}
			for _, by := range by {
				room[by] = 9
			}
			room[refusing] = 1
			redis := redistest.Alone(t)
			r := newRig(t, setup{options: func(o *api.Options) {
				store := must(redisstore.Open(redisstore.Options{URL: redis.URL(), Clock: o.Now, Timeout: 10 * time.Second}))(t)
				t.Cleanup(func() { store.Close() })
				o.Live.Rules = beside(t, store, by, room, i)
			}})
			send := func() reply {
				return r.sendAs(appKey, "left-alone@example.com", `,"client_ip":"203.0.113.7"`)
			}
			send().is(t, 200, "")
			before := records(t, redis)
			if len(before) != len(room) {
				t.Fatalf("%d rules have %d keys", len(room), len(before))
			}
			for range 10 {
				r.now.Add(1000) // so that the moment shows in what is written
				got := send()
				got.is(t, 429, "quota-exceeded")
				if got.body["rule"] != string(refusing) {
					t.Fatalf("refused by %v", got.body["rule"])
				}
			}
			if after := records(t, redis); !maps.Equal(after, before) {
				t.Errorf("before\n%v\nafter\n%v", before, after)
			}
		})
	}
}
