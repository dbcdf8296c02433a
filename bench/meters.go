package main

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

// An algorithm is one way to count: ours, and the peers that count in this way or come
// nearest to it.
type algorithm struct {
	name    string
	meter   func(throttle.Tier) (meter.Meter, error) // nil is a policy of one tier
	here    []contender                              // in one process
	inRedis []contender
}

// A contender is a peer that can be opened for a limit, in an address's Redis if it
// keeps its counts there.
type contender struct {
	name     string
	open     func(addr string, t throttle.Tier) (peer, func() error, error)
	required float64 // ours takes at most so many times as long; 0 is there to be read
	alone    bool    // has to be when it admits a key: it tries again when others do meanwhile
	commands bool    // not scripts alone, so that Redis does not tell what an answer took
}

var fixedWindow = algorithm{
	name: "fixed window",
	meter: func(t throttle.Tier) (meter.Meter, error) {
		return meter.NewFixedWindow(t)
	},
	here: []contender{
		{name: "ulule/limiter", open: openUlule, required: 1},
		{name: "go-limiter", open: openGoLimiter, required: 1},
	},
	inRedis: []contender{
		{name: "ulule/limiter", open: openUluleRedis, required: 1},
		{name: ratesName, open: openRate},
	},
}

// Those who count a sliding window by parts keep two of them, and estimate.
var slidingWindow = algorithm{
	name: "sliding window",
	meter: func(t throttle.Tier) (meter.Meter, error) {
		return meter.NewSlidingWindow(t, 0)
	},
	here: []contender{
		{name: "slidingwindow", open: openSliding, required: 1},
		{name: "go-limiter", open: openGoLimiter},
	},
	inRedis: []contender{
		{name: twoCountersName, open: openTwoCounters, required: 1},
		{name: ratesName, open: openRate, required: 1},
	},
}

var tokenBucket = algorithm{
	name: "token bucket",
	meter: func(t throttle.Tier) (meter.Meter, error) {
		return meter.NewTokenBucket(t, 0)
	},
	here: []contender{
		{name: "x/time/rate", open: openTimeRate, required: 1},
		{name: "go-limiter", open: openGoLimiter, required: 1},
		{name: "throttled", open: openThrottled, required: 1},
	},
	inRedis: []contender{
		{name: ratesName, open: openRate, required: 1},
		{name: "throttled", open: openThrottledRedis, required: 1, alone: true, commands: true},
	},
}

// GCRA refuses as a leaky bucket does, and tells when the queue will be empty, which is
// when a send's turn is over. uber-go/ratelimit neither refuses nor knows keys.
var leakyBucket = algorithm{
	name: "leaky bucket",
	meter: func(t throttle.Tier) (meter.Meter, error) {
		return meter.NewLeakyBucket(t, t.Limit-1)
	},
	here:    []contender{{name: "throttled", open: openThrottled, required: 1}},
	inRedis: []contender{{name: ratesName, open: openRate, required: 1}},
}

// In Redis that is measured as redis-denial and its like.
var slidingLog = algorithm{
	name: "sliding log",
	here: []contender{{name: "go-limiter", open: openGoLimiter, required: 1}},
}

// A scene is what is asked of all.
type scene struct {
	what    string
	tier    throttle.Tier
	keys    int
	fill    int // sends that every key has before
	yes     bool
	counted bool // ours remembers no id of a send, as no peer does
}

// The windows are so long that none ends meanwhile.
var (
	tight = throttle.Tier{Name: "year", Limit: 5, Window: 8760 * 3_600_000}
	loose = throttle.Tier{Name: "hour", Limit: meter.MaxLimit, Window: 3_600_000}
)

// keysAtRandom is how many keys are asked about in random order.
const keysAtRandom = 100_000

func (a algorithm) scenes() []scene {
	most := loose
	if a.meter == nil {
		most.Limit = throttle.MaxLimit
	}
	return []scene{
		{what: "a denial", tier: tight, keys: keysAtRandom, fill: tight.Limit},
		{what: "a denial, one key", tier: tight, keys: 1, fill: tight.Limit},
		{what: "an admission", tier: most, keys: keysAtRandom, fill: 1, yes: true},
		{what: "an admission, one key", tier: loose, keys: 1, yes: true},
	}
}

// inProcess compares the algorithm in one process, with keys in random order and with
// one that all cores ask about.
func (a algorithm) inProcess() (rows []row, err error) {
	scenes := a.scenes()
	if a.meter != nil {
		for _, s := range scenes {
			s.what, s.counted = s.what+", counted", true
			scenes = append(scenes, s)
		}
	}
	for _, s := range scenes {
		if a.meter == nil && s.yes && s.keys == 1 {
			continue // a policy keeps every send, a thousand at most
		}
		more, err := a.play(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.what, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func (a algorithm) play(s scene) ([]row, error) {
	limiter, err := a.inMemory(s.tier)
	if err != nil {
		return nil, err
	}
	return a.beside(limiter, s)
}

// beside compares a limiter of ours with the peers.
func (a algorithm) beside(limiter throttle.Limiter, s scene) ([]row, error) {
	peers := map[string]peer{ours: s.of(limiter)}
	for _, c := range a.here {
		p, stop, err := c.open("", s.tier)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		defer stop()
		peers[c.name] = p
	}
	order := s.order()
	sides := []side{{ours, s.asked(peers[ours], order)}}
	for _, c := range a.here {
		sides = append(sides, side{c.name, s.asked(peers[c.name], order)})
	}
	for name, p := range peers {
		if err := s.prepare(p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	read, err := interleave(7, sides...)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, c := range a.here {
		rows = append(rows, read.compare(a.name+": "+s.what, onTheClock, ours, c.name, c.required))
	}
	if !s.yes && !s.counted && s.keys > 1 {
		rows = append(rows, figure(a.name+": allocations of a denial", "", allocations(limiter, order)).atMost(0))
	}
	return rows, nil
}

// of is a limiter of ours as the scene asks it.
func (s scene) of(l throttle.Limiter) peer {
	if !s.counted {
		return ourPeer{l}
	}
	counting := l.(*memory.Limiter)
	return question(func(mailbox string) (bool, error) {
		r, err := counting.Count(context.Background(), mailbox)
		return r.Allowed, err
	})
}

// inMemory is our limiter for the algorithm.
func (a algorithm) inMemory(t throttle.Tier) (throttle.Limiter, error) {
	if a.meter == nil {
		p, err := throttle.NewPolicy(t)
		return memory.NewTiers(p, memory.Options{}), err
	}
	m, err := a.meter(t)
	if err != nil {
		return nil, err
	}
	return memory.New(m, memory.Options{}), nil
}

// order is the keys as they are asked about, one of them as often as many.
func (s scene) order() []string {
	if s.keys > 1 {
		return shuffled(mailboxes(s.keys))
	}
	order := make([]string, keysAtRandom)
	for i := range order {
		order[i] = mailbox("user", 0)
	}
	return order
}

func (s scene) asked(p peer, order []string) func() (cost, error) {
	return askAll(order, func(mailbox string) error { return insist(p, mailbox, s.yes) })
}

// prepare admits what every key has before.
func (s scene) prepare(p peer) error {
	all := mailboxes(s.keys)
	for range s.fill {
		if _, err := spread(fillers, s.keys, func(i int) error { return insist(p, all[i], true) }); err != nil {
			return err
		}
	}
	return nil
}
