// Package nodes has what the nodes of one Redis tell each other for their operators: what each did last, and its
// figures. Each has a stream of its own, which is read also when the node has ended.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/recent"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
)

const (
	// maxBytes bounds what Redis keeps of all nodes, but for what the second before a trim adds.
	maxBytes = 30 << 20
	audits   = 0.1 // of it are for what operators did

	// life is how long what a node told is kept after its last word.
	life = 24 * time.Hour

	// ended is after how long without a word a node gives half of what Redis keeps to those that are there.
	ended = time.Hour

	// perSecond is how many entries a node tells in a second, so that a flood on many mailboxes costs Redis little.
	perSecond = 1000
	piece     = 200 // entries in a pipeline

	// fresh is for how long what was read is new enough.
	fresh = 400 * time.Millisecond
	// idle is after how long without a reader the entries that were read are forgotten.
	idle = 10 * time.Minute
)

// Options are what New needs.
type Options struct {
	Client  redis.UniversalClient
	Prefix  string      // of all keys
	Name    string      // of this node
	Own     *recent.Log // what it did
	Audited *recent.Log // what its operators did
	Now     func() int64
	Metrics prometheus.Registerer
}

// Nodes is this node among all. Tell is for one goroutine, the rest for any number.
type Nodes struct {
	o      Options
	untold prometheus.Counter
	toldAt int64 // when Tell did
	shares shares

	Requests, Audits Shared
}

// New returns the node of a name.
func New(o Options) *Nodes {
	n := &Nodes{o: o, toldAt: o.Now(), shares: shares{1, 1}, untold: promauto.With(o.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "mailgate_requests_untold_total", Help: "Requests that only this node shows: they were too many, or Redis was away."})}
	n.Requests.init(n, ":requests:", o.Own)
	n.Audits.init(n, ":audits:", o.Audited)
	return n
}

// Shared is a log of each node, and of all.
type Shared struct {
	of     *Nodes
	prefix string

	own  *recent.Log
	next uint64  // the number of the first own entry that is not told yet
	size float64 // bytes that an entry takes in Redis

	mu   sync.Mutex
	log  *Log              // of all nodes; nil if it was not read lately
	last map[string]string // the last entry in log, by node
	read int64             // when that was
}

func (s *Shared) init(of *Nodes, name string, own *recent.Log) {
	s.of, s.prefix, s.own, s.size = of, of.o.Prefix+name, own, 400
}

// Name returns that of this node.
func (n *Nodes) Name() string { return n.o.Name }

// Figures are what a node told of itself, so many milliseconds ago by the clock of Redis.
type Figures struct {
	Node string
	Ago  int64
	Text []byte
}

func (n *Nodes) figures() string { return n.o.Prefix + ":nodes" }

// Tell writes what this node did since the last time, and its figures, unless they are nil. What it did while Redis was
// away is told when that is back.
func (n *Nodes) Tell(ctx context.Context, figures []byte) error {
	const doing = "telling the other nodes"
	now := n.o.Now()
	n.Requests.forget(now)
	n.Audits.forget(now)
	clock, err := n.o.Client.Time(ctx).Result()
	if err != nil {
		return throttle.Unavailable(doing, err)
	}
	most := int(max(1000, now-n.toldAt) * perSecond / 1000)
	n.toldAt = now
	untold, err := n.Requests.tell(ctx, n.shares.here*(1-audits), most)
	lost, failed := n.Audits.tell(ctx, n.shares.here*audits, most)
	n.untold.Add(float64(untold + lost))
	err = errors.Join(err, failed)
	if err == nil && figures != nil {
		if err = n.o.Client.HSet(ctx, n.figures(), n.o.Name, fmt.Sprintf("%d %s", clock.UnixMilli(), figures)).Err(); err == nil {
			err = n.share(ctx)
		}
	}
	if err != nil {
		return throttle.Unavailable(doing, err)
	}
	return nil
}

// shares are the parts of what Redis keeps that each node has which is there, and each that ended.
type shares struct{ here, ended float64 }

// share makes room in the streams of all where a node has come or ended.
func (n *Nodes) share(ctx context.Context) error {
	all, err := n.All(ctx)
	if err != nil {
		return err
	}
	isHere := func(f Figures) bool { return f.Ago < ended.Milliseconds() }
	here := 0.0
	for _, one := range all {
		if isHere(one) {
			here++
		}
	}
	now := shares{here: 1 / max(1, here)}
	if gone := float64(len(all)) - here; gone > 0 {
		now = shares{now.here / 2, 1 / gone / 2}
	}
	if now == n.shares {
		return nil
	}
	type stream struct {
		key            string
		share          float64
		entries, bytes *redis.IntCmd
	}
	var streams []stream
	pipe := n.o.Client.Pipeline()
	for _, one := range all {
		share := now.ended
		if isHere(one) {
			share = now.here
		}
		for key, part := range map[string]float64{n.Requests.prefix + one.Node: 1 - audits, n.Audits.prefix + one.Node: audits} {
			streams = append(streams, stream{key, share * part, pipe.XLen(ctx, key), pipe.MemoryUsage(ctx, key, 0)})
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) { // a node without a stream
		return err
	}
	pipe = n.o.Client.Pipeline()
	for _, s := range streams {
		pipe.XTrimMaxLenApprox(ctx, s.key, kept(s.share, size(s.entries, s.bytes)), 0)
	}
	if _, err = pipe.Exec(ctx); err == nil {
		n.shares = now
	}
	return err
}

// size returns how many bytes an entry of a stream takes.
func size(entries, bytes *redis.IntCmd) float64 {
	return float64(max(1, bytes.Val())) / float64(max(1, entries.Val()))
}

// kept is how many entries of a size a share of what Redis keeps is.
func kept(share, size float64) int64 {
	return max(1, int64(share*min(recent.MaxEntries, maxBytes/size)))
}

// tell adds the new entries of this node to its stream, which may have a share of what Redis keeps, and returns how many
// are in none.
func (s *Shared) tell(ctx context.Context, share float64, most int) (untold int, err error) {
	to := s.own.Next()
	entries := recent.Newest(s.own.All(s.next, to, recent.Filter{}), recent.MaxEntries)
	untold = int(to-s.next) - len(entries)
	s.next = to
	entries = oneOfAlike(entries)
	for most = min(most, int(kept(share, s.size))); len(entries) > most; entries = entries[:len(entries)-1] {
		untold += recent.Times(entries[len(entries)-1])
	}
	slices.Reverse(entries)
	for part := range slices.Chunk(entries, piece) {
		lost, failed := s.append(ctx, part, kept(share, s.size))
		untold, err = untold+lost, errors.Join(err, failed)
	}
	return untold, err
}

// append adds entries to the stream of this node, which keeps a number of them, and returns how many may not have been
// added. They are not added again.
func (s *Shared) append(ctx context.Context, entries [][]byte, kept int64) (lost int, err error) {
	key := s.prefix + s.of.o.Name
	pipe := s.of.o.Client.Pipeline()
	added := make([]*redis.StringCmd, len(entries))
	for i, e := range entries {
		added[i] = pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: kept, Approx: true, Values: []any{"e", recent.WithoutPosition(e)}})
	}
	pipe.PExpire(ctx, key, life)
	all, bytes := pipe.XLen(ctx, key), pipe.MemoryUsage(ctx, key, 0)
	if _, err = pipe.Exec(ctx); err == nil {
		s.size = size(all, bytes)
	}
	for i, answer := range added {
		if answer.Err() != nil {
			lost += recent.Times(entries[i])
		}
	}
	return lost, err
}

// oneOfAlike returns entries, the newest first, with the newest in place of refusals of one second that differ in nothing
// but their time. It has their count.
func oneOfAlike(entries [][]byte) (some [][]byte) {
	type group struct {
		index int
		after string // when its second began
	}
	kept, count := map[string]group{}, []int{}
	for _, e := range entries {
		if alike := refusal(e); alike != "" {
			at := string(recent.Text(e, "at"))
			if g, known := kept[alike]; known && at > g.after {
				count[g.index]++
				continue
			}
			newest, _ := time.Parse(time.RFC3339, at)
			kept[alike] = group{len(some), wire.Time(newest.UnixMilli() - 1000)}
		}
		some, count = append(some, e), append(count, 1)
	}
	for i, n := range count {
		if n > 1 {
			some[i] = recent.WithTimes(some[i], n)
		}
	}
	return some
}

// refusal returns what an entry of a refusal is about; empty for others.
func refusal(entry []byte) string {
	if string(recent.Text(entry, "outcome")) != ledger.Limited.Word {
		return ""
	}
	var about strings.Builder
	for _, name := range []string{"door", "key", "mailbox", "action", "subject", "rule", "limit", "visitor"} {
		about.Write(recent.Text(entry, name))
		about.WriteByte('"')
	}
	return about.String()
}

// forget drops the entries of all nodes if they have no reader.
func (s *Shared) forget(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now-s.read > idle.Milliseconds() {
		s.log, s.last = nil, nil
	}
}

// Log is what all nodes did, the oldest first. It does not change.
type Log struct {
	entries []entry
	next    uint64
}

// entry is one of a node. Number is its place in the order in which this node read them.
type entry struct {
	number uint64
	at     string // its position
	text   []byte
}

// Next returns the number of the next entry to be read.
func (l *Log) Next() uint64 { return l.next }

// All yields, of the entries from one number up to but not including another, those that a filter finds: the newest first.
func (l *Log) All(from, to uint64, f recent.Filter) iter.Seq[[]byte] {
	finds := f.Finds()
	return func(yield func([]byte) bool) {
		for _, e := range slices.Backward(l.entries) {
			shown := from <= e.number && e.number < to && finds(e.text) && jsontext.Value(e.text).IsValid() // few are: Redis may hold anything
			if shown && !yield(e.text) {
				return
			}
		}
	}
}

// Log returns what all nodes did last, up to a second or two ago.
func (s *Shared) Log(ctx context.Context) (*Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.of.o.Now()
	if s.log != nil && now >= s.read && now < s.read+fresh.Milliseconds() {
		return s.log, nil
	}
	all, err := s.of.All(ctx)
	if err != nil {
		return nil, err
	}
	pipe := s.of.o.Client.Pipeline()
	streams := make([]*redis.XMessageSliceCmd, len(all))
	for i, one := range all {
		from := "-"
		if last := s.last[one.Node]; last != "" {
			from = "(" + last
		}
		streams[i] = pipe.XRange(ctx, s.prefix+one.Node, from, "+")
	}
	if _, err := pipe.Exec(ctx); err != nil && len(all) > 0 {
		return nil, throttle.Unavailable("reading the requests of all nodes", err)
	}
	if s.log == nil {
		s.log, s.last = new(Log), map[string]string{}
	}
	number := len(s.log.entries)
	for _, stream := range streams {
		number += len(stream.Val())
	}
	log := &Log{append(make([]entry, 0, number), s.log.entries...), s.log.next}
	for i, one := range all {
		for _, message := range streams[i].Val() {
			s.last[one.Node] = message.ID
			text, _ := message.Values["e"].(string)
			at, joined, ok := recent.Joined(message.ID, one.Node, text)
			if !ok {
				continue
			}
			log.entries = append(log.entries, entry{log.next, at, joined})
			log.next++
		}
	}
	slices.SortFunc(log.entries, func(a, b entry) int { return strings.Compare(a.at, b.at) })
	log.entries = slices.Delete(log.entries, 0, max(0, len(log.entries)-recent.MaxEntries))
	s.log, s.read = log, now
	return s.log, nil
}

// All returns the figures of all nodes, by name, of which some may have ended. Those of a day ago are deleted.
func (n *Nodes) All(ctx context.Context) (all []Figures, err error) {
	pipe := n.o.Client.Pipeline()
	fields, clock := pipe.HGetAll(ctx, n.figures()), pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, throttle.Unavailable("reading the figures of all nodes", err)
	}
	for name, value := range fields.Val() {
		told, text, _ := strings.Cut(value, " ")
		at, err := strconv.ParseInt(told, 10, 64)
		f := Figures{name, clock.Val().UnixMilli() - at, []byte(text)}
		if err != nil || f.Ago > life.Milliseconds() {
			_ = n.o.Client.HDel(ctx, n.figures(), name).Err() // else the next reader does
			continue
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Figures) int { return strings.Compare(a.Node, b.Node) })
	return all, nil
}
