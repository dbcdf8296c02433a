package api_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// fingerprint is a hash of every file of a directory.
func fingerprint(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		bytes, err := os.ReadFile(dir + "/" + file)
		all[file] = sha256.Sum256(bytes)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

// ownWays limit by each algorithm on the disk, with room for so many at once and then one more
// after a while.
func (r *rig) ownWays() []func(name string, room int) rules.Rule {
	hour := func(limit int) throttle.Tier { return tier("hour", limit, 3_600_000) }
	counted := func(name string, m throttle.Algorithm) rules.Rule {
		_, queues := m.(throttle.LeakyBucket)
		return rules.Rule{Name: name, Limiter: r.counted(name, m), Queues: queues}
	}
	return []func(string, int) rules.Rule{
		func(name string, room int) rules.Rule {
			return rules.Rule{Name: name, Limiter: r.counted(name, must(throttle.NewPolicy(hour(room)))(r.t))}
		},
		func(name string, room int) rules.Rule {
			return counted(name, must(throttle.NewFixedWindow(hour(room)))(r.t))
		},
		func(name string, room int) rules.Rule {
			return counted(name, must(throttle.NewSlidingWindow(hour(room), 60))(r.t))
		},
		func(name string, room int) rules.Rule {
			return counted(name, must(throttle.NewTokenBucket(hour(1), room))(r.t))
		},
		func(name string, room int) rules.Rule {
			return counted(name, must(throttle.NewLeakyBucket(hour(1), room-1))(r.t))
		},
	}
}

// A no by one rule leaves all others as they were, each in its turn and each time by another
// algorithm, beside all of them: what they say, what they remember, and every byte on the
// disk. Those that come after the one that refuses are among them, and those before.
func TestARefusalLeavesTheOthersAlone(t *testing.T) {
	const email, domain = "left-alone@example.com", "example.com"
	order := []string{"visitors", "domains", "callers", "templates", "all"}
	by := map[string]rules.By{"visitors": rules.ByClientIP, "domains": rules.ByDomain, "callers": rules.ByAPIKey, "templates": rules.ByTemplate, "all": rules.ByAll}
	keys := map[string]string{"visitors": "203.0.113.7", "domains": domain, "callers": "shop", "templates": "code", "all": "all"}
	for i, refusing := range append(order, rules.MailboxRule) {
		t.Run(refusing, func(t *testing.T) {
			limit := map[string]int{refusing: 1} // of all others 9
			dir, limiters := t.TempDir(), map[string]throttle.Limiter{}
			r := newRig(t, setup{dir: dir, policy: fmt.Sprintf("hour=%d/1h", cmp.Or(limit[rules.MailboxRule], 9)), rules: func(r *rig, _ *rules.Rule) (all []rules.Rule) {
				ways := r.ownWays()
				for j, name := range order {
					rule := ways[(i+j)%len(ways)](name, cmp.Or(limit[name], 9))
					rule.By, limiters[name] = by[name], rule.Limiter
					all = append(all, rule)
				}
				return all
			}})
			state := func() (said string) {
				for _, name := range order {
					v := must(limiters[name].Peek(context.Background(), keys[name]))(t)
					said += fmt.Sprintln(name, v.Allowed, v.Wait, v.Tiers)
				}
				return said + fmt.Sprintln(must(r.limiter.History(context.Background(), email))(t))
			}
			const visitor = `,"client_ip":"203.0.113.7"`
			r.sendAs(appKey, email, visitor).is(t, 200, "")
			said, files := state(), fingerprint(t, dir)
			for range 10 {
				got := r.sendAs(appKey, email, visitor)
				got.is(t, 429, "quota-exceeded")
				if got.body["rule"] != refusing {
					t.Fatalf("refused by %v", got.body["rule"])
				}
			}
			if after := state(); after != said {
				t.Errorf("before\n%safter\n%s", said, after)
			}
			if after := fingerprint(t, dir); !maps.Equal(after, files) {
				t.Error("something was written")
			}
			must(r.limiter.Take(context.Background(), "written@example.com", throttle.NewID()))(t)
			if after := fingerprint(t, dir); maps.Equal(after, files) {
				t.Error("a write does not show")
			}
		})
	}
}
