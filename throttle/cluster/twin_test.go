package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// The scripts keep what the meters of Go would keep, to the byte, whatever is asked:
// not only every answer is the same, but also every state and how long it is kept.
func TestScriptsCountAsTheirMeters(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				random := rand.New(rand.NewPCG(seed, 1))
				newTwin(t, server, random, family, windows[random.IntN(len(windows))]).walk(400)
				newTwin(t, server, random, family, throttle.MaxWindow).walk(10) // a century
				w := newTwin(t, server, random, family, windows[random.IntN(len(windows))])
				w.records = 10 + 20*int(seed%2)
				w.walk(400)
			}
		})
	}
}

// Where the numbers are as large as they can be, they are still exact.
func TestScriptsCountWithLargeNumbers(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	const million, window = 1_000_000, throttle.MaxWindow - 7
	room := func(window int64) int { return int(1<<52/window - 1) }
	for name, m := range map[string]func(limit, room int) (meter.Meter, error){
		"a slow bucket": func(int, int) (meter.Meter, error) { return meter.NewTokenBucket(tier(1, window), room(window)) },
		"a fast bucket": func(int, int) (meter.Meter, error) {
			return meter.NewTokenBucket(tier(999_999_937, window), room(window))
		},
		"a long queue": func(int, int) (meter.Meter, error) {
			return meter.NewLeakyBucket(tier(7, 9_999_991), room(9_999_991)-1)
		},
		"a full day":    func(int, int) (meter.Meter, error) { return meter.NewFixedWindow(tier(1000*million, 86_400_000)) },
		"a full decade": func(int, int) (meter.Meter, error) { return meter.NewSlidingWindow(tier(1000*million, window), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range 10 {
				w := newTwin(t, server, random, func(*rand.Rand, int64) func(int, int) (meter.Meter, error) { return m }, 0)
				w.fill()
				for range 30 {
					w.clock.Add(random.Int64N(3) * random.Int64N(2+w.meter.Tier().Window/1_000_000))
					w.take(throttle.NewID())
					w.peek()
					w.record()
				}
				w.release(w.someID())
				w.reset()
			}
		})
	}
}

// fill puts a state into redis that is full but for a few.
func (w *twin) fill() {
	now, few := w.clock.Load(), w.random.Int64N(20)
	var head string
	switch m := w.meter.(type) {
	case meter.FixedWindow:
		w.state = meter.State{At: now - now%m.Tier().Window, Count: int64(m.Tier().Limit) - few}
		head = pack(number{w.state.At, 6}, number{w.state.Count, 4})
	case meter.SlidingWindow:
		w.state = meter.State{At: now - now%m.Part(), Count: int64(m.Tier().Limit) - few}
		w.state.Parts = []int64{w.state.Count}
		head = pack(number{w.state.At, 6}, number{w.state.Count, 4}, number{w.state.Count, 4})
	case interface{ Room() int }:
		level := (int64(m.Room())-few)*w.meter.Tier().Window - w.random.Int64N(w.meter.Tier().Window)
		w.state = meter.State{At: now, Count: level, Parts: []int64{now, level}}
		head = pack(number{now, 6}, number{level, 7}, number{now, 6}, number{level, 7})
	}
	text := pack(number{int64(len(head)), 2}) + head
	if err := w.server.Client().Set(context.Background(), w.metered.prefix+w.key, text, time.Hour).Err(); err != nil {
		w.t.Fatal(err)
	}
	_, w.expires = w.kept()
	w.matters = w.meter.Expires(&w.state)
}

// A script that decides otherwise than the meter makes an error of it, and no yes.
func TestDisagreementIsAnError(t *testing.T) {
	server := redistest.Alone(t)
	for name, family := range families {
		w := newTwin(t, server, rand.New(rand.NewPCG(1, 1)), family, 60_000)
		one, err := w.make(1, 1)
		if err != nil {
			t.Fatal(err)
		}
		three, err := w.make(3, 3)
		if err != nil {
			t.Fatal(err)
		}
		lax, strict := w.meters.Limiter("some", one).(*metered), w.meters.Limiter("some", three).(*metered)
		lax.layout, strict.layout = strict.layout, lax.layout
		for _, by := range []*metered{lax, strict} {
			first, err := by.Take(context.Background(), name, throttle.NewID())
			if err != nil || !first.Allowed {
				t.Fatalf("%s: the first: %v, %v", name, first.Allowed, err)
			}
			second, err := by.Take(context.Background(), name, throttle.NewID())
			if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, errDisagree) || second.Allowed {
				t.Errorf("%s: the second: %v, %v", name, second.Allowed, err)
			}
			by.Reset(context.Background(), name)
		}
	}
}

// A stranger embeds a meter, and counts as it likes.
type stranger struct{ meter.Meter }

func TestAStrangersMeterIsRefused(t *testing.T) {
	w := newTwin(t, redistest.Alone(t), rand.New(rand.NewPCG(1, 1)), families["fixed window"], 60_000)
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "stranger") {
			t.Errorf("%q", said)
		}
	}()
	w.meters.Limiter("some", stranger{w.meter})
}

func TestAMeterThatCountsNothingIsRefused(t *testing.T) {
	meters := new(Meters) // nothing of it is used
	for _, m := range []meter.Meter{nil, meter.FixedWindow{}, meter.SlidingWindow{}, meter.TokenBucket{}, meter.LeakyBucket{}} {
		t.Run(fmt.Sprintf("%T", m), func(t *testing.T) {
			defer func() {
				if said := recover(); said != "cluster: a limiter needs a meter that one of package meter's New functions made" {
					t.Errorf("%v", said)
				}
			}()
			meters.Limiter("zero", m)
		})
	}
}

// A family makes meters that use each other's states: they differ in how many they
// admit.
type family func(random *rand.Rand, window int64) func(limit, room int) (meter.Meter, error)

var families = map[string]family{
	"fixed window": func(_ *rand.Rand, window int64) func(int, int) (meter.Meter, error) {
		return func(limit, _ int) (meter.Meter, error) { return meter.NewFixedWindow(tier(limit, window)) }
	},
	"sliding window": func(random *rand.Rand, window int64) func(int, int) (meter.Meter, error) {
		parts := 1 + random.IntN(int(min(window, 70)))
		return func(limit, _ int) (meter.Meter, error) { return meter.NewSlidingWindow(tier(limit, window), parts) }
	},
	"token bucket": func(_ *rand.Rand, window int64) func(int, int) (meter.Meter, error) {
		return func(limit, room int) (meter.Meter, error) { return meter.NewTokenBucket(tier(limit, window), room) }
	},
	"leaky bucket": func(_ *rand.Rand, window int64) func(int, int) (meter.Meter, error) {
		return func(limit, room int) (meter.Meter, error) { return meter.NewLeakyBucket(tier(limit, window), room-1) }
	},
}

func tier(limit int, window int64) throttle.Tier {
	return throttle.Tier{Name: "some", Limit: limit, Window: window}
}

var windows = []int64{1, 2, 7, 100, 999, 60_000, 86_400_000}

// A twin asks a limiter and a meter the same.
type twin struct {
	t      *testing.T
	server *redistest.Server
	random *rand.Rand
	clock  atomic.Int64
	meters *Meters
	make   func(limit, room int) (meter.Meter, error)

	key     string
	metered *metered
	meter   meter.Meter
	state   meter.State
	expires time.Duration // since 1970, by the server
	matters int64         // until when the state did
	ids     []throttle.ID
	story   []string

	longs   int   // how often its state was long
	limits  []int // what there may be
	reach   int   // how far back an id is taken again
	records int   // how many of 40 steps record, besides the others that do
}

func newTwin(t *testing.T, server *redistest.Server, random *rand.Rand, f family, window int64) *twin {
	w := &twin{t: t, server: server, random: random, key: throttle.NewID().String(), limits: []int{1, 2, 3, 7, 30}, reach: 6}
	w.clock.Store(1_800_000_000_000 + random.Int64N(1_000_000))
	store, err := redisstore.Open(redisstore.Options{URL: server.URL(), Clock: w.clock.Load, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if w.meters, err = NewMeters(store); err != nil {
		t.Fatal(err)
	}
	w.make = f(random, window)
	w.change()
	return w
}

// change changes the limit and leaves what is on record.
func (w *twin) change() {
	m, err := w.make(w.limits[w.random.IntN(len(w.limits))], w.limits[w.random.IntN(len(w.limits))])
	if err != nil {
		w.t.Fatal(err)
	}
	w.meter, w.metered = m, w.meters.Limiter("twin", m).(*metered)
	w.story = append(w.story, m.String())
}

func (w *twin) walk(steps int) {
	for range steps {
		w.moveClock()
		if w.random.IntN(40) < w.records {
			w.record()
			continue
		}
		switch dice := w.random.IntN(40); {
		case dice < 20:
			w.take(throttle.NewID())
		case dice < 26:
			for range 1 + w.random.IntN(10) {
				w.take(throttle.NewID())
			}
		case dice < 30:
			w.take(w.someID())
		case dice < 36:
			w.release(w.someID())
		case dice < 37:
			w.release(throttle.ID{}) // which stands in each vacant place
		case dice < 38:
			w.peek()
			w.record()
		case dice < 39:
			w.change()
		default:
			w.reset()
		}
	}
}

func (w *twin) moveClock() {
	window := w.meter.Tier().Window
	switch dice := w.random.IntN(20); {
	case dice < 6:
	case dice < 13:
		w.clock.Add(w.random.Int64N(2 + window/int64(w.meter.Tier().Limit)))
	case dice < 16:
		w.clock.Add(w.random.Int64N(2 + window/20))
	case dice < 18:
		w.clock.Add(max(0, w.meter.Expires(&w.state)-w.clock.Load()-1+w.random.Int64N(3)))
	case dice < 19:
		w.clock.Add(-w.random.Int64N(2 + window))
	default:
		w.clock.Add(w.random.Int64N(2 + 2*window))
	}
}

// someID is one of the last that were admitted, or one that never was.
func (w *twin) someID() throttle.ID {
	if len(w.ids) == 0 || w.random.IntN(10) == 0 {
		return throttle.NewID()
	}
	return w.ids[max(0, len(w.ids)-1-w.random.IntN(w.reach))]
}

func (w *twin) take(id throttle.ID) {
	w.t.Helper()
	got, err := w.metered.Take(context.Background(), w.key, id)
	want, changed := w.meter.Take(&w.state, id, w.clock.Load())
	if changed {
		w.ids = append(w.ids, id)
	}
	w.same("take "+id.String(), w.spell(want), spell(got), err, want.Allowed)
}

func (w *twin) peek() {
	w.t.Helper()
	got, err := w.metered.Peek(context.Background(), w.key)
	w.same("peek", w.spell(w.meter.Look(&w.state, w.clock.Load())), spell(got), err, false)
}

// record records some sends, in any order.
func (w *twin) record() {
	w.t.Helper()
	all := []throttle.Admission{w.sent()}
	record := func() error { return w.metered.Record(context.Background(), w.key, all[0]) }
	if w.random.IntN(2) == 0 {
		for range w.random.IntN(6) {
			all = append(all, w.sent())
		}
		record = func() error { return w.metered.RecordAll(context.Background(), w.key, all) }
	}
	err := record()
	known, changed := false, false
	for _, a := range all {
		known = known || w.state.Count > 0 && w.state.Held.Find(a.ID) >= 0
		if meter.Record(w.meter, &w.state, a, w.clock.Load()) {
			w.ids, changed = append(w.ids, a.ID), true
			w.matters = -1 // it is kept for an hour longer, however long it was before
		}
	}
	kept, expires := w.kept()
	if known && !changed && expires != w.expires {
		changed = true // written again, for the replicas
	}
	w.same(fmt.Sprint("record ", all), spellState(w.state), spellState(kept), err, changed)
}

// sent is a new id or one of the last, at any time around now, or not long ago.
func (w *twin) sent() throttle.Admission {
	tier := w.meter.Tier()
	a := throttle.Admission{ID: throttle.NewID(), At: w.clock.Load() + tier.Window/10 - w.random.Int64N(2+2*tier.Window)}
	if w.random.IntN(2) == 0 {
		a.At = w.clock.Load() - w.random.Int64N(2+5*tier.Window/int64(tier.Limit))
	}
	if w.random.IntN(3) == 0 {
		a.ID = w.someID()
	}
	return a
}

func (w *twin) release(id throttle.ID) {
	w.t.Helper()
	got, err := w.metered.Release(context.Background(), w.key, id)
	want := w.meter.Release(&w.state, id, w.clock.Load())
	w.same("release "+id.String(), want, got, err, want)
}

func (w *twin) reset() {
	w.t.Helper()
	got, err := w.metered.Reset(context.Background(), w.key)
	want := w.meter.Used(&w.state, w.clock.Load())
	w.state = meter.State{}
	w.same("reset", want, got, err, true)
}

// same compares the answers, and then what is kept.
func (w *twin) same(doing string, want, got any, err error, written bool) {
	w.t.Helper()
	w.story = append(w.story, fmt.Sprintf("%d %s: %v", w.clock.Load(), doing, got))
	kept, expires := w.kept()
	if err == nil && got == want && sameState(kept, w.state) && w.rightly(expires, written) {
		w.expires, w.matters = expires, w.meter.Expires(&w.state)
		return
	}
	for _, line := range w.story[max(0, len(w.story)-15):] {
		w.t.Log(line)
	}
	w.t.Fatalf("%v; want %v\nkept %s until %v, before %v\nwant %s", err, want, spellState(kept), expires, w.expires, spellState(w.state))
}

func (w *twin) kept() (state meter.State, expires time.Duration) {
	w.t.Helper()
	ctx, pipe := context.Background(), w.server.Client().Pipeline()
	text, at := pipe.Get(ctx, w.metered.prefix+w.key), pipe.PExpireTime(ctx, w.metered.prefix+w.key)
	pipe.Exec(ctx)
	if text.Val() == "" {
		return meter.State{}, 0
	}
	if text.Val()[0]&(longBit>>8) != 0 {
		w.longs++
	}
	short, err := shortened(text.Val())
	if err != nil {
		w.t.Fatal(err)
	}
	saw, err := readState(short + "18000000000") // a clock belongs to it
	if err != nil {
		w.t.Fatal(err)
	}
	if state, err = w.metered.layout.state(saw); err != nil {
		w.t.Fatal(err)
	}
	state.Held = state.Held[max(0, len(state.Held)-meter.MaxHeld):]
	return state, at.Val()
}

func sameState(a, b meter.State) bool {
	return a.At == b.At && a.Count == b.Count && slices.Equal(a.Parts, b.Parts) && slices.Equal(a.Held, b.Held)
}

// rightly says whether a key may expire then: an hour, as a test holds the clock, after
// its state says nothing any more; and as before where nothing was written, or the state
// matters as long as before.
func (w *twin) rightly(expires time.Duration, written bool) bool {
	switch {
	case w.state.Count == 0:
		return expires == 0
	case !written:
		return expires == w.expires
	case expires == w.expires && w.meter.Expires(&w.state) == w.matters:
		return true
	}
	matters := max(0, w.meter.Expires(&w.state)-w.clock.Load())
	late := expires - time.Duration(time.Now().UnixMilli()+matters)*time.Millisecond
	return late <= time.Hour && late > time.Hour-30*time.Second
}

func spell(v throttle.Verdict) string {
	return fmt.Sprint(v.Allowed, " ", v.Limit, v.Wait, v.Now, v.RetryAt(), v.Delay, v.Tiers())
}

func (w *twin) spell(r meter.Reading) string {
	quota := w.meter.Quota()
	var v throttle.Verdict
	r.Spell(&v, &quota, w.clock.Load())
	return spell(v)
}

func spellState(s meter.State) string {
	return fmt.Sprintf("at %d %d %d %v", s.At, s.Count, s.Parts, s.Held)
}
