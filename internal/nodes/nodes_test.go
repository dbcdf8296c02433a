package nodes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/nodes"
	"github.com/mailgate/mailgate/internal/recent"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
)

// node is one of several, whose clock stands.
type node struct {
	*nodes.Nodes
	t       *testing.T
	name    string
	own     recent.Log
	audited recent.Log
	metrics *prometheus.Registry
	now     int64
}

func newNode(t *testing.T, client redis.UniversalClient, name string) *node {
	n := &node{t: t, name: name, metrics: prometheus.NewRegistry(), now: time.Now().UnixMilli()}
	n.Nodes = nodes.New(nodes.Options{Client: client, Prefix: "mailgate", Name: name, Own: &n.own, Audited: &n.audited, Now: func() int64 { return n.now }, Metrics: n.metrics})
	return n
}

// did adds an entry of an outcome about a mailbox.
func (n *node) did(outcome, mailbox string) {
	o := wire.Object(",")
	o.String("outcome", outcome)
	o.String("mailbox", mailbox)
	n.own.Add(n.now, o[1:])
}

func (n *node) tell() {
	n.t.Helper()
	n.now += 1000
	must.OK(n.t, n.Tell(n.t.Context(), []byte(`{}`)))
}

// shown are the newest entries of all nodes: "node outcome mailbox count".
func (n *node) shown(f recent.Filter, most int) (shown []string) {
	n.t.Helper()
	n.now += 1000
	log := must.Get(n.Requests.Log(n.t.Context()))(n.t)
	for _, e := range recent.Newest(log.All(0, log.Next(), f), most) {
		if !json.Valid(e) {
			n.t.Fatalf("%s", e)
		}
		shown = append(shown, fmt.Sprintf("%s %s %s %d", recent.Text(e, "node"), recent.Text(e, "outcome"), recent.Text(e, "mailbox"), recent.Times(e)))
	}
	return shown
}

func (n *node) untold() float64 {
	return must.Get(n.metrics.Gather())(n.t)[0].GetMetric()[0].GetCounter().GetValue()
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, ", "), strings.Join(want, ", "); g != w {
		t.Errorf("%s: %s; want %s", what, g, w)
	}
}

// Each node shows what all did, the newest first, page by page, also of those that have ended.
func TestLog_AllNodes_MergedAndPaged(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t)
	for where, client := range map[string]redis.UniversalClient{"standalone": redistest.Alone(t).Client(), "Cluster": cluster.Client()} {
		a, b := newNode(t, client, "a:1"), newNode(t, client, "b:2")
		at := time.Now().UnixMilli()
		by := func(n *node) *node { // by its clock, which all have
			at += 2000
			n.now = at
			return n
		}
		by(a).did("sent", "m1")
		a.tell()
		same(t, where+", one node", a.shown(recent.Filter{}, 9), "a:1 sent m1 1")
		by(b).did("sent", "m2")
		by(a).did("rejected", "m1")
		a.tell()
		by(b).did("sent", "m3")
		b.tell()
		all := []string{"b:2 sent m3 1", "a:1 rejected m1 1", "b:2 sent m2 1", "a:1 sent m1 1"}
		for _, n := range []*node{a, b, newNode(t, client, "c:3")} { // of which the last told nothing
			same(t, where, n.shown(recent.Filter{}, 9), all...)
			same(t, where+", of a node", n.shown(recent.Filter{Members: map[string]string{"node": "a:1"}}, 9), all[1], all[3])
			same(t, where+", of a mailbox", n.shown(recent.Filter{Members: map[string]string{"mailbox": "m2"}}, 9), all[2])
			log := must.Get(n.Requests.Log(t.Context()))(t)
			first := recent.Newest(log.All(0, log.Next(), recent.Filter{}), 2)
			same(t, where+", the next page", n.shown(recent.Filter{Before: recent.Position(first[1])}, 2), all[2:]...)
		}
	}
}

// A flood on one mailbox is one entry a second with its count, and one on many a bounded number.
func TestTell_Flood_StaysCheap(t *testing.T) {
	t.Parallel()
	client := redistest.Alone(t).Client()
	a := newNode(t, client, "a:1")
	for range 10_000 {
		a.did("quota-exceeded", "victim")
	}
	a.did("sent", "m1")
	a.tell()
	same(t, "one mailbox", a.shown(recent.Filter{}, 9), "a:1 sent m1 1", "a:1 quota-exceeded victim 10000")
	log := must.Get(a.Requests.Log(t.Context()))(t)
	if most := recent.Most(log.All(0, log.Next(), recent.Filter{}), 1, "mailbox")["mailbox"][0]; most.Count != 10_000 || a.untold() != 0 {
		t.Errorf("most are %+v, untold %v", most, a.untold())
	}
	for i := range 5000 {
		a.did("quota-exceeded", fmt.Sprint(i))
	}
	a.tell()
	if n := len(a.shown(recent.Filter{}, 10_000)); n > 2003 || n < 1002 || a.untold() != float64(5002-n) {
		t.Errorf("of many mailboxes %d entries are told, %v not", n, a.untold())
	}
}

// Refusals of an outage, which are told together, are one entry for each second.
func TestTell_RefusedForAMinute_EachSecondCounted(t *testing.T) {
	t.Parallel()
	a := newNode(t, redistest.Alone(t).Client(), "a:1")
	for range 6 {
		a.did("quota-exceeded", "victim")
		a.now += 500
	}
	a.tell()
	same(t, "in three seconds", a.shown(recent.Filter{}, 9), "a:1 quota-exceeded victim 2", "a:1 quota-exceeded victim 2", "a:1 quota-exceeded victim 2")
}

// What a node did while Redis was away is told when it is back.
func TestTell_RedisAway_ToldWhenItIsBack(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	a, b := newNode(t, server.Client(), "a:1"), newNode(t, server.Client(), "b:2")
	a.tell()
	server.Kill()
	a.did("sent", "m1")
	if err := a.Tell(t.Context(), nil); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	if _, err := b.Requests.Log(t.Context()); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	server.Restart()
	a.tell()
	same(t, "back", b.shown(recent.Filter{}, 9), "a:1 sent m1 1")
	if a.untold() != 0 {
		t.Errorf("untold %v", a.untold())
	}
}

// What Redis does not take is counted.
func TestTell_RedisTakesNone_Counted(t *testing.T) {
	t.Parallel()
	client := redistest.Alone(t).Client()
	must.OK(t, client.Set(t.Context(), "mailgate:requests:a:1", "no stream", 0).Err())
	a := newNode(t, client, "a:1")
	a.did("sent", "m1")
	for range 3 {
		a.did("quota-exceeded", "m2")
	}
	if err := a.Tell(t.Context(), nil); !errors.Is(err, throttle.ErrUnavailable) || a.untold() != 4 {
		t.Errorf("the error is %v, untold %v", err, a.untold())
	}
}

// After a failover of Sentinel the nodes go on.
func TestTell_SentinelFailover_GoesOn(t *testing.T) {
	t.Parallel()
	servers := redistest.Sentinel(t, 1)
	client := must.Get(redisx.Open(redisx.Options{URL: servers.URL(), Timeout: 5 * time.Second, Prefix: "mailgate"}))(t)
	t.Cleanup(func() { _ = client.Close() })
	a := newNode(t, client, "a:1")
	a.did("sent", "m1")
	a.tell()
	servers.AwaitReplicas()
	servers.Failover()
	a.did("sent", "m2")
	redistest.Healed(t, func() (any, error) { return nil, a.Tell(t.Context(), []byte(`{}`)) })
	same(t, "after the failover", a.shown(recent.Filter{}, 1), "a:1 sent m2 1")
}

// All nodes together take less than 32 MB of Redis, however much and long what they tell is.
func TestTell_ManyLongEntries_Below32MB(t *testing.T) {
	t.Parallel()
	client := redistest.Alone(t).Client()
	all := []*node{newNode(t, client, "a:1"), newNode(t, client, "b:2"), newNode(t, client, "c:3")}
	for _, length := range []int{0, 900, 1700, 300} { // the last come while long ones are still there
		for range 8 {
			used := int64(0)
			for _, n := range all {
				for i := range 3000 {
					n.did("sent", strings.Repeat("x", length)+fmt.Sprint(i))
				}
				n.now += 10_000
				n.tell()
				used += must.Get(client.MemoryUsage(t.Context(), "mailgate:requests:"+n.name, 0).Result())(t)
			}
			if used > 32<<20 || length == 300 && used < 15<<20 {
				t.Errorf("at length %d they take %d bytes", length, used)
			}
		}
	}
}

// What a node told alone gives way to those that come, also if it does nothing any more.
func TestTell_NodesJoin_Below32MB(t *testing.T) {
	t.Parallel()
	client := redistest.Alone(t).Client()
	all := []*node{newNode(t, client, "a:1"), newNode(t, client, "b:2"), newNode(t, client, "c:3")}
	for _, n := range all {
		for range 20 {
			for i := range 3000 {
				n.did("sent", strings.Repeat("x", 900)+fmt.Sprint(i))
			}
			n.now += 10_000
			n.tell()
		}
	}
	used := int64(0)
	for _, n := range all {
		used += must.Get(client.MemoryUsage(t.Context(), "mailgate:requests:"+n.name, 0).Result())(t)
	}
	if used > 32<<20 {
		t.Errorf("they take %d bytes", used)
	}
}

// Nodes that ended leave half of the room to those that are there, however many they were.
func TestTell_FiftyNodesEnded_RoomForThoseThatAreThere(t *testing.T) {
	t.Parallel()
	client := redistest.Alone(t).Client()
	a := newNode(t, client, "a:1")
	for i := range 50 {
		old := newNode(t, client, fmt.Sprint("old:", i))
		for j := range 2000 {
			old.did("sent", fmt.Sprint(j))
		}
		old.now += 2000
		old.tell()
		must.OK(t, client.HSet(t.Context(), "mailgate:nodes", old.name, fmt.Sprintf("%d {}", time.Now().Add(-2*time.Hour).UnixMilli())).Err())
	}
	for range 5 {
		for j := range 2000 {
			a.did("sent", fmt.Sprint(j))
		}
		a.now += 2000
		a.tell()
	}
	if n, old := client.XLen(t.Context(), "mailgate:requests:a:1").Val(), client.XLen(t.Context(), "mailgate:requests:old:1").Val(); n != 10_000 || old > 1000 || old < 400 {
		t.Errorf("%d entries are kept of the node that is there, %d of one that ended", n, old)
	}
}

// An entry that is none is left out.
func TestLog_DamagedEntry_LeftOut(t *testing.T) {
	t.Parallel()
	client := redistest.Alone(t).Client()
	a := newNode(t, client, "a:1")
	add := func(field, text string) {
		must.OK(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: "mailgate:requests:a:1", Values: []any{field, text}}).Err())
	}
	add("other", "")
	for _, text := range []string{"", "{", "{}", `{"at":"`, `{"at":""}`, `{"at":"2999-01-01T00:00:00.000Z"`, "{\"at\":\"2999-01-01T00:00:00.000Z\",\"key\":\"\n\"}", `{"at":"2999-01-01T00:00:00.000Z","node":"b:2"}`} {
		add("e", text)
	}
	a.did("sent", "m1")
	a.tell()
	same(t, "the rest", a.shown(recent.Filter{}, 9), "a:1 sent m1 1")
}

// The figures of a node that ended a day ago are gone.
func TestAll_EndedADayAgo_Gone(t *testing.T) {
	t.Parallel()
	client := redistest.Alone(t).Client()
	a := newNode(t, client, "a:1")
	must.OK(t, client.HSet(t.Context(), "mailgate:nodes", "b:2", fmt.Sprintf("%d {}", time.Now().Add(-25*time.Hour).UnixMilli())).Err())
	a.tell()
	for range 2 {
		if all := must.Get(a.All(t.Context()))(t); len(all) != 1 || all[0].Node != "a:1" || string(all[0].Text) != "{}" {
			t.Errorf("%+v", all)
		}
		a.tell()
	}
	if n := client.HLen(t.Context(), "mailgate:nodes").Val(); n != 1 {
		t.Errorf("%d nodes are kept", n)
	}
}

// How long ago a node told its figures is by the clock of Redis: a node with another clock is as much there as others.
func TestAll_ClocksDiffer_AgoIsByRedis(t *testing.T) {
	t.Parallel()
	client := redistest.Alone(t).Client()
	a, early, late := newNode(t, client, "a:1"), newNode(t, client, "b:2"), newNode(t, client, "c:3")
	early.now += 600_000
	late.now -= 48 * 3600_000
	for _, n := range []*node{a, early, late} {
		n.tell()
	}
	all := must.Get(a.All(t.Context()))(t)
	for _, f := range all {
		if f.Ago < 0 || f.Ago > 60_000 {
			t.Errorf("%s told %d ms ago", f.Node, f.Ago)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d nodes", len(all))
	}
}

func BenchmarkLog(b *testing.B) {
	client := redistest.Alone(b).Client()
	var own recent.Log
	now := int64(0)
	n := nodes.New(nodes.Options{Client: client, Prefix: "mailgate", Name: "a:1", Own: &own, Audited: new(recent.Log), Now: func() int64 { return now }, Metrics: prometheus.NewRegistry()})
	for range 50 {
		for i := range 1000 {
			o := wire.Object(",")
			o.String("outcome", "sent")
			o.String("mailbox", fmt.Sprintf("%010x", i))
			o.String("said", strings.Repeat("x", 250))
			own.Add(now, o[1:])
		}
		now += 1000
		must.OK(b, n.Tell(b.Context(), []byte("{}")))
	}
	find := func(b *testing.B, pause int64) {
		for b.Loop() {
			now += pause
			if pause > time.Hour.Milliseconds() {
				must.OK(b, n.Tell(b.Context(), []byte("{}"))) // which forgets
			}
			log := must.Get(n.Requests.Log(b.Context()))(b)
			if f := (recent.Filter{Members: map[string]string{"mailbox": "0000000007"}}); len(recent.Newest(log.All(0, log.Next(), f), 40)) < 30 {
				b.Fatal("they are not found")
			}
		}
	}
	b.Run("first", func(b *testing.B) { find(b, 2*time.Hour.Milliseconds()) })
	b.Run("next", func(b *testing.B) { find(b, 1000) })
}
