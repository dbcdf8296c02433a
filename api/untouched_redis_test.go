package api_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/rules"
)

// records are all keys of a Redis, each with its bytes and the moment it expires.
func records(t *testing.T, redis *redistest.Server) map[string]string {
	t.Helper()
	all, ctx, client := map[string]string{}, context.Background(), redis.Client()
	for _, key := range must(client.Keys(ctx, "*").Result())(t) {
		all[key] = fmt.Sprintf("%x until %d", must(client.Dump(ctx, key).Result())(t), must(client.PExpireTime(ctx, key).Result())(t))
	}
	return all
}

// TestSend_RuleInRedisRefuses_WritesNothing has each rule refuse, each time by another algorithm.
// Every byte of every key stays, and so does the moment at which the key expires.
func TestSend_RuleInRedisRefuses_WritesNothing(t *testing.T) {
	bys := []rules.By{rules.ByMailbox, rules.ByClientIP, rules.ByDomain, rules.ByAPIKey, rules.ByTemplate, rules.ByAll}
	for step, refusing := range bys {
		t.Run(string(refusing), func(t *testing.T) {
			redis := redistest.Alone(t)
			r := newRig(t, setup{options: func(o *api.Options) {
				o.Live.Rules = must(rules.New(rules.Options{Remote: true}, rulesInRedis(t, redis, bys, refusing, step)...))(t)
			}})
			send := func() reply {
				return r.sendAs(appKey, "left-alone@example.com", `,"client_ip":"203.0.113.7"`)
			}
			send().is(t, 200, "")
			before := records(t, redis)
			if len(before) != len(bys) {
				t.Fatalf("%d rules have %d keys", len(bys), len(before))
			}
			for range 10 {
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

// rulesInRedis have room for nine sends each, and the one that refuses for one.
func rulesInRedis(t *testing.T, redis *redistest.Server, bys []rules.By, refusing rules.By, step int) (all []rules.Rule) {
	hour := func(limit int) throttle.Tier { return tier("hour", limit, 3_600_000) }
	for i, by := range bys {
		room := 9
		if by == refusing {
			room = 1
		}
		algorithms := []throttle.Algorithm{
			must(throttle.NewPolicy(hour(room)))(t), must(throttle.NewFixedWindow(hour(room)))(t), must(throttle.NewSlidingWindow(hour(room), 60))(t),
			must(throttle.NewTokenBucket(hour(1), room))(t), must(throttle.NewLeakyBucket(hour(1), room-1))(t),
		}
		algorithm := algorithms[(i+step)%len(algorithms)]
		if by == rules.ByMailbox {
			algorithm = algorithms[0]
		}
		_, exact := algorithm.(throttle.Policy)
		_, queues := algorithm.(throttle.LeakyBucket)
		all = append(all, rules.Rule{
			Name: string(by), By: by, Exact: exact, Queues: queues,
			Limiter: must(cluster.New(redis.Client(), "test-"+string(by), algorithm))(t),
		})
	}
	return all
}
