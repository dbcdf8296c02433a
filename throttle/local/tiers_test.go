package local_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func sendsOf(t testing.TB, limiter throttle.Historian, mailbox string) int {
	t.Helper()
	h, err := limiter.History(context.Background(), mailbox)
	if err != nil {
		t.Fatal(err)
	}
	return len(h)
}

// A limiter with a name passes the whole suite, as one without does, by turns from memory
// and from disk.
func TestTiersConform(t *testing.T) {
	disk := cachetest.Open(t, t.TempDir())
	size := cache.Size{Entries: 1, Bytes: shortHistory}
	throttletest.RunAgain(t, func(t testing.TB, p throttle.Policy, now func() int64) throttle.Historian {
		limiter := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy(), Now: now, Size: size, Name: throttle.NewID().String()})
		return limiter.Tiers("named", p)
	}, 2000)
}

// Whatever mailboxes and names are made of, no mailbox of one limiter is one of another.
func TestTiersAreApart(t *testing.T) {
	mailbox := openLimiter(t, cachetest.Open(t, cache.Memory), local.Options{Policy: throttle.DefaultPolicy(), Now: standing})
	names := []string{"", "net", "net\x00", "net\x00a", "net%00a", "\x00", "\x00net", "/", "%2F", "é", "\xff"}
	mailboxes := []string{"a", "\x00a", "\x00\x00a", "\x00net\x00a", "\x00\x00net\x00a", "net\x00a", "\x00net\x00", "\x00", "\x00\x00", "\x00net%00\x00a", "%00", "net"}
	for _, want := range []bool{true, false} {
		for _, name := range names {
			limiter := mailbox.Tiers(name, throttle.DefaultPolicy())
			for _, key := range mailboxes {
				v, err := limiter.Take(context.Background(), key, throttle.NewID())
				if err != nil || v.Allowed != want {
					t.Fatalf("name %q, mailbox %q: allowed %t, %v; want %t", name, key, v.Allowed, err, want)
				}
			}
		}
	}
	for _, key := range mailboxes {
		if n, err := mailbox.Tiers("net", throttle.DefaultPolicy()).Reset(context.Background(), key); n != 1 || err != nil {
			t.Errorf("reset of %q cleared %d, %v", key, n, err)
		}
		if n := sendsOf(t, mailbox, key); n != 1 {
			t.Errorf("a reset elsewhere left %d sends to %q", n, key)
		}
	}
}

// Views of one name count together; a name means the same wherever it is asked for, and
// without one a view has the histories of the limiter it came from.
func TestTiersOfOneNameShareHistories(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	mailbox := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy(), Now: standing})
	domain := mailbox.Tiers("domain", throttletest.Policy(t, "minute=3/60s"))
	id := throttle.NewID()
	take(t, domain, "example.com", id, true)
	for name, same := range map[string]*local.Limiter{
		"again":            mailbox.Tiers("domain", throttletest.Policy(t, "minute=3/60s")),
		"from a view":      mailbox.Tiers("other", throttletest.Policy(t, "hour=1/1h")).Tiers("domain", throttletest.Policy(t, "hour=9/1h")),
		"without a name":   domain.Tiers("", throttletest.Policy(t, "hour=9/1h")),
		"without a policy": domain.Tiers("", throttle.Policy{}),
	} {
		h, err := same.History(context.Background(), "example.com")
		if err != nil || len(h) != 1 || h[0].ID != id {
			t.Errorf("%s: history %v, %v", name, h, err)
		}
	}
	if n := sendsOf(t, mailbox, "example.com"); n != 0 {
		t.Errorf("%d sends without the name", n)
	}
	mailbox.Close()
	if _, err := domain.Peek(context.Background(), "example.com"); err == nil {
		t.Error("a view answers after its limiter was closed")
	}
	reopened := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy(), Now: standing})
	if n := sendsOf(t, reopened.Tiers("domain", throttletest.Policy(t, "hour=9/1h")), "example.com"); n != 1 {
		t.Errorf("%d sends after it was opened again", n)
	}
}

func TestTiersWithoutAPolicy(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	for _, name := range []string{"", "named"} {
		for _, memory := range memories(shortHistory) {
			t.Run(name+" "+memory.name, func(t *testing.T) {
				throttletest.RunZeroPolicy(t, opener(disk, memory.size), func(l throttle.Historian, p throttle.Policy) throttle.Historian {
					return l.(*local.Limiter).Tiers(name, p)
				})
			})
		}
	}
}

// Another policy on the same histories: it counts what is on record, and what is kept is
// what the policy says that recorded last.
func TestTiersReplaceAPolicy(t *testing.T) {
	const minute, hour = int64(60_000), int64(3_600_000)
	policies := []string{"day=9/24h", "hour=9/1h"}
	const long, short = 0, 1
	steps := []struct {
		what string
		at   int64 // after noon
		by   int   // the policy that records a send
		want [2]int
	}{
		{"the long one records", 0, long, [2]int{1, 1}},
		{"and again", hour - 1, long, [2]int{2, 2}},
		{"the short one records, and looks back an hour", hour, short, [2]int{2, 2}},
		{"what has left the hour was dropped for both", 2*hour - 2, short, [2]int{3, 3}},
		{"the long one goes on with what there is", 2*hour - 1, long, [2]int{4, 3}},
		{"it keeps for a day again what it finds", 2*hour + minute, long, [2]int{5, 3}},
		{"then the short one is the last to record", 3 * hour, short, [2]int{2, 2}},
	}
	for _, memory := range memories(shortHistory) {
		t.Run(memory.name, func(t *testing.T) {
			clock := clocktest.New(noon)
			first := openLimiter(t, cachetest.Open(t, t.TempDir()), local.Options{Policy: throttletest.Policy(t, policies[long]), Size: memory.size, Now: clock.Now})
			limiters := [2]*local.Limiter{first, first.Tiers("", throttletest.Policy(t, policies[short]))}
			for _, step := range steps {
				clock.Set(noon + step.at)
				take(t, limiters[step.by], "a@example.com", throttle.NewID(), true)
				if got := [2]int{sendsOf(t, limiters[long], "a@example.com"), sendsOf(t, limiters[short], "a@example.com")}; got != step.want {
					t.Errorf("%s: %d sends on record, want %d", step.what, got, step.want)
				}
			}
			clock.Set(noon + 4*hour - 1)
			if n := sendsOf(t, limiters[long], "a@example.com"); n != 2 {
				t.Errorf("%d sends just before the hour is over", n)
			}
			clock.Set(noon + 4*hour)
			if n := sendsOf(t, limiters[long], "a@example.com"); n != 0 {
				t.Errorf("%d sends when the hour is over that they were kept for", n)
			}
		})
	}
}

// Who closes a limiter that came from another ends nothing of that.
func TestCloseOfADerivedLimiter(t *testing.T) {
	mailbox := openLimiter(t, cachetest.Open(t, cache.Memory), local.Options{Policy: throttle.DefaultPolicy()})
	login := mailbox.Tiers("login", throttle.DefaultPolicy())
	login.Tiers("", throttle.DefaultPolicy()).Close()
	login.Close()
	for name, l := range map[string]*local.Limiter{"the first": mailbox, "the derived": login} {
		if _, err := l.Take(context.Background(), "alice", throttle.NewID()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	mailbox.Close()
	if _, err := login.Take(context.Background(), "bob", throttle.NewID()); err == nil {
		t.Error("it goes on after the one it came from")
	}
}
