package suppression_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
)

const day = int64(24 * time.Hour / time.Millisecond)

func of(t testing.TB, text string) address.Address {
	t.Helper()
	return must.Get(address.Parse(text, must.Get(address.NewIdentity(true))(t)))(t)
}

// node is a list and what it keeps its copy in.
type node struct {
	*suppression.List
	t     testing.TB
	ahead *atomic.Int64
	end   func()
}

// open opens a list in a directory, beside Redis if there is a server.
func open(t testing.TB, dir string, redis *redistest.Server) *node {
	t.Helper()
	n := &node{t: t, ahead: &atomic.Int64{}}
	now := func() int64 { return time.Now().UnixMilli() + n.ahead.Load() }
	store := must.Get(cache.Open(cache.Options{Dir: dir, Now: now}))(t)
	o := suppression.Options{Table: store.Table("suppressions"), Events: store.Table("events"), Now: now, Log: slog.New(slog.DiscardHandler), Prefix: "mailgate"}
	if redis != nil {
		client := must.Get(redisx.Open(redisx.Options{URL: redis.URL(), Timeout: 5 * time.Second, Prefix: "mailgate"}))(t)
		t.Cleanup(func() { _ = client.Close() })
		o.Redis = client
	}
	n.List = must.Get(suppression.Open(t.Context(), o))(t)
	n.end = sync.OnceFunc(func() {
		n.Close()
		_ = store.Close()
	})
	t.Cleanup(n.end)
	return n
}

func (n *node) add(text string, r suppression.Reason) {
	n.t.Helper()
	must.OK(n.t, n.Add(n.t.Context(), of(n.t, text), r, "a test"))
}

// has reports for which reasons an address is suppressed.
func (n *node) has(text string) (reasons []suppression.Reason) {
	n.t.Helper()
	for _, e := range must.Get(n.Find(of(n.t, text)))(n.t) {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

func (n *node) expect(text string, want ...suppression.Reason) {
	n.t.Helper()
	if got := n.has(text); !slices.Equal(got, want) {
		n.t.Errorf("%s is suppressed for %v, want %v", text, got, want)
	}
}

// all reads the list page by page.
func (n *node) all() (entries []suppression.Entry) {
	n.t.Helper()
	for name := ""; ; {
		page, next, err := n.Page(n.t.Context(), name)
		if err != nil {
			n.t.Fatal(err)
		}
		if entries = append(entries, page...); next == "" {
			return entries
		}
		name = next
	}
}

// detail returns the sources of what an address is suppressed for.
func (n *node) detail(text string) (sources []string) {
	n.t.Helper()
	found := must.Get(n.Find(of(n.t, text)))(n.t)
	n.Detail(n.t.Context(), found)
	for _, e := range found {
		if sources = append(sources, e.Source); (e.Since == 0) != (e.Source == "") || e.Address == "" {
			n.t.Errorf("an entry is %v", e)
		}
	}
	return sources
}

// homes runs a test on each home.
func homes(t *testing.T, test func(t *testing.T, open func() *node)) {
	t.Run("Disk", func(t *testing.T) {
		dir := t.TempDir()
		test(t, func() *node { return open(t, dir, nil) })
	})
	t.Run("Memory", func(t *testing.T) { test(t, func() *node { return open(t, "", nil) }) })
	t.Run("Redis", func(t *testing.T) {
		redis := redistest.Alone(t)
		test(t, func() *node { return open(t, t.TempDir(), redis) })
	})
}

func TestFind_EachReason_CoversWhatItSays(t *testing.T) {
	t.Parallel()
	homes(t, func(t *testing.T, open func() *node) {
		n := open()
		n.add("Victim+typo@example.com", suppression.HardBounce)
		n.expect("victim+typo@example.com", suppression.HardBounce)
		n.expect("victim@example.com")
		n.add("victim+tag@example.com", suppression.NotMe)
		n.add("victim@example.com", suppression.Complaint)
		n.expect("v.ictim@example.com")
		n.expect("VICTIM+other@example.com", suppression.Complaint, suppression.NotMe)
		if got := n.detail("victim+other@example.com"); !slices.Equal(got, []string{"a test", "a test"}) {
			t.Errorf("the sources are %q", got)
		}
		n.expect("victim+typo@example.com", suppression.Complaint, suppression.HardBounce, suppression.NotMe)
		if got := n.Counts(); got[suppression.Complaint] != 1 || got[suppression.Manual] != 0 || got[suppression.HardBounce] != 1 {
			t.Errorf("the list counts %v", got)
		}
		n.ahead.Add(7*day + 1)
		n.expect("victim+typo@example.com", suppression.Complaint, suppression.HardBounce)
		n.ahead.Add(23 * day)
		n.expect("victim+typo@example.com", suppression.Complaint)
		must.OK(t, n.Remove(t.Context(), of(t, "Victim@example.com")))
		n.expect("victim+typo@example.com")
		must.OK(t, n.Remove(t.Context(), of(t, "none@example.com")))
	})
}

// Providers report in lower case: where letter case makes two mailboxes, too, the one that complained gets no email.
func TestFind_CaseNotFolded_CoversEachCase(t *testing.T) {
	t.Parallel()
	n, identity := open(t, "", nil), must.Get(address.NewIdentity(false))(t)
	reported := must.Get(address.Parse("alice@example.com", identity))(t)
	complained := must.Get(address.Parse("Alice@example.com", identity))(t)
	for _, r := range suppression.Reasons {
		must.OK(t, n.Add(t.Context(), reported, r, "a test"))
		if found := must.Get(n.Find(complained))(t); len(found) != 1 || found[0].Reason != r {
			t.Errorf("after a %s the list has %v", r, found)
		}
		must.OK(t, n.Remove(t.Context(), complained))
		if found := must.Get(n.Find(reported))(t); len(found) != 0 {
			t.Errorf("after the removal the list has %v", found)
		}
	}
}

func TestPage_ManyEntries_EachOnce(t *testing.T) {
	t.Parallel()
	homes(t, func(t *testing.T, open func() *node) {
		n := open()
		const many = suppression.PageSize + 7
		for i := range many {
			n.add(fmt.Sprintf("m%d@example.com", i), suppression.Manual)
		}
		must.OK(t, n.Remove(t.Context(), of(t, "m3@example.com")))
		if _, _, err := n.Page(t.Context(), "x"); !errors.Is(err, suppression.ErrPage) {
			t.Errorf("a page of no name: %v", err)
		}
		seen := map[string]bool{}
		for _, e := range n.all() {
			if seen[e.Address] || e.Reason != suppression.Manual || e.Source != "a test" || e.Since == 0 || e.Until != 0 {
				t.Errorf("the list has %+v", e)
			}
			seen[e.Address] = true
		}
		if len(seen) != many-1 || seen["m3@example.com"] {
			t.Errorf("the list has %d entries, want %d", len(seen), many-1)
		}
	})
}

// What one node adds or removes is known to another within a second, and after a start.
func TestRedis_TwoNodes_KnowWithinASecond(t *testing.T) {
	t.Parallel()
	redis := redistest.Alone(t)
	one, other := open(t, t.TempDir(), redis), open(t, t.TempDir(), redis)
	within := func(what string, known func() bool) {
		t.Helper()
		for began := time.Now(); !known(); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > time.Second {
				t.Fatalf("after a second the other node does not know that %s", what)
			}
		}
	}
	for range 5 {
		one.add("alice@example.com", suppression.Manual)
		one.expect("alice@example.com", suppression.Manual)
		within("alice is suppressed", func() bool { return len(other.has("alice@example.com")) == 1 })
		must.OK(t, other.Remove(t.Context(), of(t, "alice@example.com")))
		other.expect("alice@example.com")
		within("alice is not", func() bool { return len(one.has("alice@example.com")) == 0 })
	}
	one.add("bob@example.com", suppression.Complaint)
	open(t, "", redis).expect("bob@example.com", suppression.Complaint)
}

// Of a list that a node kept alone Redis gets the entries that it lacks. A copy of an older shared list revives nothing.
func TestRedis_KeptAlone_BroughtOnce(t *testing.T) {
	t.Parallel()
	redis, dir := redistest.Durable(t), t.TempDir()
	other := open(t, t.TempDir(), redis)
	n := open(t, dir, redis)
	for _, email := range []string{"stale@example.com", "again@example.com"} {
		n.add(email, suppression.Complaint)
	}
	n.end()
	n = open(t, dir, nil)
	n.add("lifted@example.com", suppression.Complaint)
	n.end()
	other.add("lifted@example.com", suppression.Complaint)
	for _, email := range []string{"stale@example.com", "again@example.com", "lifted@example.com"} {
		must.OK(t, other.Remove(t.Context(), of(t, email)))
	}
	must.OK(t, other.Add(t.Context(), of(t, "both@example.com"), suppression.HardBounce, "Redis"))

	time.Sleep(2 * time.Millisecond) // what follows is newer than the removals
	n = open(t, dir, nil)
	n.ahead.Add(day)
	n.add("both@example.com", suppression.HardBounce)
	n.ahead.Add(-day)
	n.add("again@example.com", suppression.Complaint)
	const many = 2*suppression.PageSize + 7
	for i := range many {
		n.add(fmt.Sprintf("m%d@example.com", i), suppression.HardBounce)
	}
	n.end()
	redis.Kill()
	n = open(t, dir, redis)
	n.expect("m3@example.com", suppression.HardBounce)
	n.expect("stale@example.com", suppression.Complaint)
	redis.Restart()
	servertest.Eventually(t, "the list in Redis", func() bool { return len(other.all()) == many+2 })
	servertest.Eventually(t, "the list of Redis", func() bool {
		return len(n.has("stale@example.com")) == 0 && len(other.has("again@example.com")) == 1
	})
	for _, node := range []*node{n, other} {
		node.expect("stale@example.com")
		node.expect("lifted@example.com")
		node.expect("again@example.com", suppression.Complaint)
		if got := node.detail("both@example.com"); !slices.Equal(got, []string{"Redis"}) {
			t.Errorf("the sources are %q", got)
		}
	}
	must.OK(t, other.Remove(t.Context(), of(t, "m3@example.com")))
	for _, forget := range []error{ // as a day later
		redis.Client().HDel(t.Context(), "mailgate:{suppressions}", "m3@example.com hard-bounce").Err(),
		redis.Client().ZRem(t.Context(), "mailgate:{suppressions}:changes", "m3@example.com hard-bounce").Err(),
	} {
		must.OK(t, forget)
	}
	n.end()
	n = open(t, dir, redis)
	n.expect("m3@example.com")
	n.end()
	n = open(t, dir, nil)
	n.expect("m3@example.com")
	n.expect("m4@example.com", suppression.HardBounce)
	n.expect("again@example.com", suppression.Complaint)
}

// In an outage a node decides by its copy, also one that starts in it, and changes nothing.
func TestRedis_Away_DecidesByTheCopy(t *testing.T) {
	t.Parallel()
	redis, dir := redistest.Durable(t), t.TempDir()
	one, other := open(t, t.TempDir(), redis), open(t, dir, redis)
	one.add("alice@example.com", suppression.Manual)
	one.add("lifted@example.com", suppression.Manual)
	servertest.Eventually(t, "the copy", func() bool { return len(other.has("lifted@example.com")) == 1 })
	must.OK(t, one.Remove(t.Context(), of(t, "lifted@example.com")))
	servertest.Eventually(t, "the removal", func() bool { return len(other.has("lifted@example.com")) == 0 })
	redis.Kill()
	other.end()
	other = open(t, dir, redis)
	other.expect("lifted@example.com")
	for _, n := range []*node{one, other} {
		n.expect("alice@example.com", suppression.Manual)
		if got := n.detail("alice@example.com"); !slices.Equal(got, []string{""}) {
			t.Errorf("the sources in an outage are %q", got)
		}
		if err := n.Add(t.Context(), of(t, "bob@example.com"), suppression.Manual, ""); !errors.Is(err, throttle.ErrUnavailable) {
			t.Errorf("adding in an outage: %v", err)
		}
		if err := n.Remove(t.Context(), of(t, "alice@example.com")); !errors.Is(err, throttle.ErrUnavailable) {
			t.Errorf("removing in an outage: %v", err)
		}
		n.expect("bob@example.com")
		n.expect("alice@example.com", suppression.Manual)
	}
	redis.Restart()
	servertest.Eventually(t, "a change after the outage", func() bool {
		return one.Add(t.Context(), of(t, "carol@example.com"), suppression.Manual, "") == nil
	})
	servertest.Eventually(t, "the other node", func() bool { return len(other.has("carol@example.com")) == 1 })
}

// Without a copy nothing is known until Redis has answered.
func TestRedis_AwayAndNoCopy_Unavailable(t *testing.T) {
	t.Parallel()
	redis := redistest.Alone(t)
	open(t, "", redis).add("alice@example.com", suppression.Manual)
	redis.Pause()
	client := must.Get(redisx.Open(redisx.Options{URL: redis.URL(), Timeout: 100 * time.Millisecond, Prefix: "mailgate"}))(t)
	t.Cleanup(func() { _ = client.Close() })
	l := must.Get(suppression.Open(t.Context(), suppression.Options{Redis: client, Prefix: "mailgate", Log: slog.New(slog.DiscardHandler), Now: func() int64 { return time.Now().UnixMilli() }}))(t)
	t.Cleanup(l.Close)
	if _, err := l.Find(of(t, "alice@example.com")); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("before Redis has answered: %v", err)
	}
	redis.Resume()
	servertest.Eventually(t, "the list", func() bool {
		found, err := l.Find(of(t, "alice@example.com"))
		return err == nil && len(found) == 1
	})
}

// A Redis that has lost everything has the nodes forget it, too.
func TestRedis_LostItsData_NodesForget(t *testing.T) {
	t.Parallel()
	redis, dir := redistest.Alone(t), t.TempDir()
	n := open(t, dir, redis)
	n.add("alice@example.com", suppression.Manual)
	n.add("bob@example.com", suppression.Manual)
	must.OK(t, redis.Client().FlushAll(context.Background()).Err())
	servertest.Eventually(t, "the node to forget", func() bool { return len(n.has("alice@example.com")) == 0 })
	n.add("carol@example.com", suppression.Manual)
	if got := n.all(); len(got) != 1 {
		t.Errorf("the list has %v", got)
	}
}

// What a change has removed, or has ended, is not in Redis for good.
func TestRedis_Ended_IsDeleted(t *testing.T) {
	t.Parallel()
	redis := redistest.Alone(t)
	n := open(t, "", redis)
	n.add("old@example.com", suppression.NotMe)
	must.OK(t, redis.Client().ZIncrBy(t.Context(), "mailgate:{suppressions}:ends", float64(-9*day), "old@example.com not-me").Err())
	n.add("new@example.com", suppression.Manual)
	got := must.Get(redis.Client().HKeys(t.Context(), "mailgate:{suppressions}").Result())(t)
	slices.Sort(got)
	if !slices.Equal(got, []string{"", "new@example.com manual"}) {
		t.Errorf("Redis has %q", got)
	}
	if left := must.Get(redis.Client().ZCard(t.Context(), "mailgate:{suppressions}:changes").Result())(t); left != 1 {
		t.Errorf("%d changes are left", left)
	}
}

// BenchmarkFind_Million measures a look-up and the memory of a million entries.
func BenchmarkFind_Million(b *testing.B) {
	n := open(b, "", nil)
	before := heap()
	suppression.Fill(n.List, 1_000_000)
	taken := float64(heap()-before) / 1e6
	suppressed, other := of(b, "u77@example.com"), of(b, "nobody@example.com")
	for b.Loop() {
		_, _ = n.Find(suppressed)
		_, _ = n.Find(other)
	}
	b.ReportMetric(taken, "B/entry")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
