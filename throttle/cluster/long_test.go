package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// What scripts/meter_begin.lua says of a long state.
const (
	longBit     = 1 << 15
	filterWords = 1024
	filterBytes = filterWords * 4
	mostAdded   = 1024 // ids, before the filter is made anew
	mostGone    = 512  // admissions in front that nobody remembers
	long        = 256  // admissions make a state long
	short       = 128  // and fewer than these short again
)

// shortened is a state as a short one would be: its head and what is remembered. It is an error if
// it is not as a state should be.
func shortened(text string) (string, error) {
	head := 2 + int(redisstore.BigEndian(text[:2])&^longBit)
	if text[0]&(longBit>>8) == 0 {
		return text, nil
	}
	added, gone, held := int(redisstore.BigEndian(text[head:head+2])), int(redisstore.BigEndian(text[head+2:head+4])), int(redisstore.BigEndian(text[head+4:head+6]))
	filter, sends := text[head+6:head+6+filterBytes], text[head+6+filterBytes:]
	switch {
	case added > mostAdded || gone > mostGone || held < short || held > meter.MaxHeld:
		return "", fmt.Errorf("%d ids were added, %d admissions forgotten, %d are remembered", added, gone, held)
	case len(sends) != (gone+held)*sendBytes:
		return "", fmt.Errorf("%d bytes are %d admissions forgotten and %d remembered", len(sends), gone, held)
	}
	remembered := sends[gone*sendBytes:]
	admissions, err := parseSends(remembered)
	if err != nil {
		return "", err
	}
	for i, a := range admissions {
		if !vacant(a) && !inFilter(filter, a.ID) {
			return "", fmt.Errorf("admission %d of %d, %s, is not in the filter", i+1, held, a.ID)
		}
	}
	return string([]byte{text[0] &^ (longBit >> 8)}) + text[1:head] + remembered, nil
}

// inFilter reports whether an id may be on record, as meter_begin.lua sees it.
func inFilter(filter string, id throttle.ID) bool {
	x, y := binary.BigEndian.Uint32(id[:4]), binary.BigEndian.Uint32(id[4:])
	mixed := (uint64(x)*40503 + uint64(y)*30011) % 1048573
	word, bits := uint32(redisstore.BigEndian(filter[mixed%filterWords*4:][:4])), mixed/filterWords
	return word>>(bits%32)&1 == 1 && word>>(bits/32)&1 == 1
}

// So do those whose states are long, whose heads alone are read and which are changed in place.
func TestScriptsCountOfManyAsTheirMeters(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	const recording = 4 // a seed
	walk := func(name string, family family, seed uint64, pace int64, limits ...int) {
		t.Run(fmt.Sprint(name, " ", limits), func(t *testing.T) {
			t.Parallel()
			w := newTwin(t, server, rand.New(rand.NewPCG(seed, 3)), family, windows[len(windows)-1-int(seed)%2])
			w.limits, w.reach = limits, 1500
			w.change()
			steps, enough := 3000, 500
			if testing.Short() {
				steps, enough = 1500, 100
			}
			if seed == recording {
				w.records, enough = 8, enough/2 // what is recorded leaves it short for a moment
			}
			w.flow(steps, pace)
			w.reset()
			if w.longs < enough {
				t.Errorf("%d states were long, which are too few to tell", w.longs)
			}
		})
	}
	for name, family := range families {
		walk(name, family, 0, 20_000, 200, 900, 1023, 1024, 1025, 5000)
		pace := int64(2_000)
		if strings.HasSuffix(name, "bucket") {
			pace = 20_000 // else it drains as quickly
		}
		walk(name, family, 1, pace, 1025, 5000)
		walk(name, family, 2, 20_000, 255, 256, 257, 300, 600)
		walk(name, family, recording, 20_000, 200, 900, 1025, 5000)
	}
	// Its head is longer than what is read first.
	walk("fine sliding window", func(_ *rand.Rand, window int64) func(int, int) (meter.Meter, error) {
		return func(limit, _ int) (meter.Meter, error) {
			return meter.NewSlidingWindow(tier(limit, window), meter.MaxParts)
		}
	}, 3, 2_000, 1025, 5000)
}

// flow is a walk of many sends, some thousands in a window: in most of it they come, in some
// they are mostly given back.
func (w *twin) flow(steps int, pace int64) {
	ebb := false
	for range steps {
		w.clock.Add(w.random.Int64N(2 + w.meter.Tier().Window/pace))
		if w.random.IntN(40) < w.records {
			w.record()
			continue
		}
		if w.random.IntN(100) == 0 {
			ebb = w.random.IntN(4) == 0
		}
		switch dice := w.random.IntN(200); {
		case dice < 90 && ebb:
			w.release(w.someID())
		case dice < 180:
			w.take(throttle.NewID())
		case dice < 186:
			w.take(w.someID())
		case dice < 192:
			w.release(w.someID())
		case dice < 194:
			w.peek()
			w.record()
		case dice < 196:
			w.change()
		case dice < 197:
			w.clock.Add(-w.random.Int64N(2 + w.meter.Tier().Window/100))
		default:
			w.clock.Add(w.random.Int64N(2 + w.meter.Tier().Window/10))
		}
	}
}

// A state is long from some admissions on, and short again when few of them are left.
func TestWhenAStateIsLong(t *testing.T) {
	t.Parallel()
	w := newTwin(t, redistest.Alone(t), rand.New(rand.NewPCG(4, 4)), families["fixed window"], throttle.MaxWindow)
	w.limits = []int{5000}
	w.change()
	is := func(what string, want bool) {
		t.Helper()
		if got := w.text()[0]&(longBit>>8) != 0; got != want {
			t.Fatalf("%s: long is %v", what, got)
		}
	}
	for range long - 1 {
		w.take(throttle.NewID())
	}
	is("almost enough", false)
	w.take(throttle.NewID())
	is("enough", true)
	for range 10 {
		w.take(throttle.NewID())
	}
	for len(w.ids) > short {
		w.release(w.ids[len(w.ids)-1])
		w.ids = w.ids[:len(w.ids)-1]
		is("enough to stay so", true)
		if text := w.text(); redisstore.BigEndian(text[12:14]) != 10 {
			t.Fatalf("of 10 ids that the filter has got it knows %d", redisstore.BigEndian(text[12:14]))
		}
	}
	w.release(w.ids[0])
	is("too few", false)
	w.take(throttle.NewID())
	is("too few to begin", false)
}

// A lower limit can leave too few of them, too.
func TestALowerLimitMakesAStateShort(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	for room, want := range map[int]bool{short: true, short - 1: false} {
		w := newTwin(t, server, rand.New(rand.NewPCG(4, 4)), families["token bucket"], throttle.MaxWindow)
		count := func(room int) {
			m, err := w.make(5000, room)
			if err != nil {
				t.Fatal(err)
			}
			w.meter, w.metered = m, w.meters.Limiter("twin", m).(*metered)
		}
		count(5000)
		w.takeMany(long)
		w.clock.Add((long - 100) * throttle.MaxWindow / 5000) // a hundred are left, all are on record
		count(room)
		w.take(throttle.NewID())
		if got := w.text()[0]&(longBit>>8) != 0; got != want {
			t.Errorf("of %d that are remembered: long is %v", room, got)
		}
	}
}

// What is read first is 512 bytes, whatever ends there.
func TestStatesThatEndNearWhatIsReadFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	const part = 1000
	fine := func(*rand.Rand, int64) func(int, int) (meter.Meter, error) {
		return func(limit, _ int) (meter.Meter, error) {
			return meter.NewSlidingWindow(tier(limit, meter.MaxParts*part), meter.MaxParts)
		}
	}
	for _, sends := range []int{2, 35, 300} {
		for parts := int64(115); parts < 130; parts++ { // 12 bytes and 4 for each
			w := newTwin(t, server, rand.New(rand.NewPCG(7, 7)), fine, meter.MaxParts*part)
			w.limits = []int{5000}
			w.change()
			w.clock.Store(1_800_000_000_000)
			w.takeMany(sends - 1)
			w.clock.Add((parts - 1) * part)
			w.take(throttle.NewID())
			if got := 2 + int64(redisstore.BigEndian(w.text()[:2])&^longBit); got != 12+4*parts {
				t.Fatalf("the head has %d bytes, want %d", got, 12+4*parts)
			}
			w.peek()
			w.take(w.ids[0])
			w.take(throttle.NewID())
			w.release(w.ids[0])
			w.peek()
			w.take(throttle.NewID())
			w.release(w.ids[len(w.ids)-1])
			w.reset()
		}
	}
}

// A long state is read in one piece when its filter is full or there is too much in front of
// it that nobody remembers, and else where it looks as if the id were on record. What says
// no reads no more than its head, and what says yes changes it in place.
func TestALongStateIsSeldomRead(t *testing.T) {
	t.Parallel()
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwin(t, redistest.Alone(t), rand.New(rand.NewPCG(5, 5)), family, throttle.MaxWindow)
			before := 3000
			if testing.Short() {
				before = 1200 // soon the filter is full, and later there is too much in front
			}
			w.limits, w.reach = []int{before + 1000}, 1
			w.change()
			w.takeMany(before)
			alarms := 0
			for range 1000 {
				text, id := w.text(), throttle.NewID()
				head := 2 + int(redisstore.BigEndian(text[:2])&^longBit)
				if inFilter(text[head+6:], id) {
					alarms++
				}
				added, gone := redisstore.BigEndian(text[head:head+2]), redisstore.BigEndian(text[head+2:head+4])
				moves := added == mostAdded || gone == mostGone
				reads := moves || inFilter(text[head+6:], id)
				w.resetStats()
				w.takeUnseen(id)
				if calls := w.calls("get"); calls > 0 != reads {
					t.Fatalf("%d ids were added, %d are forgotten: read %d times, want %v", added, gone, calls, reads)
				}
				if calls := w.calls("set"); calls > 0 != moves {
					t.Fatalf("%d ids were added, %d are forgotten: written anew %d times, want %v", added, gone, calls, moves)
				}
				if next := redisstore.BigEndian(w.text()[head : head+2]); next != (added+1)%(mostAdded+1) {
					t.Fatalf("%d ids were added, and then %d", added, next)
				}
			}
			t.Logf("%d of 1000 new ids looked as if they were on record", alarms)
			if alarms > 40 {
				t.Errorf("%d of 1000 new ids looked as if they were on record", alarms)
			}
			w.seeExpiry()
			w.peek() // now all is compared
			// Full, it says no of its head.
			w.resetStats()
			for range 100 {
				if w.takeUnseen(throttle.NewID()) {
					t.Fatal("admitted more than there is room for")
				}
			}
			w.looksUnseen()
			if calls := w.calls("get"); calls > 10 {
				t.Errorf("100 denials read all of the state %d times", calls)
			}
		})
	}
}

// An id is found as long as it is remembered, however old, and never after.
func TestEachAdmissionOfALongStateIsFound(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	every := 1
	if testing.Short() {
		every = 7
	}
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwin(t, server, rand.New(rand.NewPCG(6, 6)), family, throttle.MaxWindow)
			w.limits, w.reach = []int{5000}, 1
			w.change()
			w.takeMany(meter.MaxHeld + 300)
			first := len(w.ids) - meter.MaxHeld
			for i := first; i < len(w.ids); i += every {
				w.take(w.ids[i])
			}
			if first != len(w.ids)-meter.MaxHeld {
				t.Fatal("an id that is remembered was charged again")
			}
			for _, id := range w.ids[:first][:20] {
				w.take(id)
			}
			if first != len(w.ids)-meter.MaxHeld-20 {
				t.Fatal("an id that was forgotten was not charged")
			}
			for _, i := range []int{first + 20, first + 500, len(w.ids) - 1, len(w.ids) - 2} {
				w.release(w.ids[i])
			}
		})
	}
}

// No id is ever seen as new that is on record, through all changes of the filter.
func TestFilterForgetsNone(t *testing.T) {
	t.Parallel()
	const many = 512 // ids at once
	all := 100_000
	if testing.Short() {
		all /= 10
	}
	store, err := redisstore.Open(redisstore.Options{URL: redistest.Alone(t).URL(), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	meters, err := NewMeters(store)
	if err != nil {
		t.Fatal(err)
	}
	m, err := meter.NewFixedWindow(tier(2*all, throttle.MaxWindow))
	if err != nil {
		t.Fatal(err)
	}
	by := meters.Limiter("filter", m)
	takeAll := func(ids []throttle.ID) {
		var group sync.WaitGroup
		for _, id := range ids {
			group.Go(func() {
				if v, err := by.Take(context.Background(), "some", id); err != nil || !v.Allowed {
					t.Errorf("taking %s: %v, %v", id, v.Allowed, err)
				}
			})
		}
		group.Wait()
	}
	ids := make([]throttle.ID, many)
	for taken := 0; taken < all; taken += many {
		for i := range ids {
			if ids[i] = throttle.NewID(); i%3 == 0 { // as it may be handed in
				ids[i] = throttle.ID(fmt.Appendf(nil, "%08d", taken+i))
			}
		}
		takeAll(ids)
		if taken/many%8 == 0 {
			takeAll(ids)
		}
		v, err := by.Peek(context.Background(), "some")
		if err != nil {
			t.Fatal(err)
		}
		if charged := 2*all - v.Tiers()[0].Remaining; charged != taken+many {
			t.Fatalf("%d sends were charged as %d", taken+many, charged)
		}
	}
}

// A state as it was before there were long ones is read, and becomes one.
func TestALongStateOfBefore(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	for name, family := range families {
		for _, sends := range []int{300, meter.MaxHeld, meter.MaxHeld + 100} {
			t.Run(fmt.Sprint(name, " of ", sends), func(t *testing.T) {
				t.Parallel()
				w := newTwin(t, server, rand.New(rand.NewPCG(8, 8)), family, throttle.MaxWindow)
				w.limits, w.reach = []int{5000}, 1
				w.change()
				w.takeMany(min(sends, meter.MaxHeld))
				text, err := shortened(w.text())
				if err != nil {
					t.Fatal(err)
				}
				head, gone := 2+redisstore.BigEndian(text[:2]), throttle.NewID()
				for range sends - meter.MaxHeld { // what nobody remembered lay in front
					text = text[:head] + text[head:head+6] + gone.String() + text[head:]
				}
				ctx, key := context.Background(), w.metered.prefix+w.key
				if err := server.Client().Do(ctx, "SET", key, text, "KEEPTTL").Err(); err != nil {
					t.Fatal(err)
				}
				w.peek()
				w.take(w.ids[len(w.ids)-200])
				w.release(w.ids[len(w.ids)-100])
				w.take(throttle.NewID())
				if w.text()[0]&(longBit>>8) == 0 {
					t.Error("it does not become a long one")
				}
				w.take(w.ids[len(w.ids)-200])
				w.take(gone)
				w.take(throttle.NewID())
			})
		}
	}
}

func (w *twin) text() string {
	return w.server.Client().Get(context.Background(), w.metered.prefix+w.key).Val()
}

// takeMany is many a take of which a later step compares what is kept.
func (w *twin) takeMany(sends int) {
	w.t.Helper()
	for range sends {
		w.takeUnseen(throttle.NewID())
	}
	w.seeExpiry()
}

// seeExpiry sees until when the key is kept, which a step that compares has to know.
func (w *twin) seeExpiry() {
	w.expires = w.server.Client().PExpireTime(context.Background(), w.metered.prefix+w.key).Val()
}

// takeUnseen is take that leaves it to a later step to compare what is kept, after seeExpiry.
func (w *twin) takeUnseen(id throttle.ID) bool {
	w.t.Helper()
	got, err := w.metered.Take(context.Background(), w.key, id)
	want, changed := w.meter.Take(&w.state, id, w.clock.Load())
	if changed {
		w.ids = append(w.ids, id)
	}
	if err != nil || got.Allowed != want.Allowed {
		w.t.Fatalf("take %s: %v, %v; want %v", id, got.Allowed, err, want.Allowed)
	}
	return got.Allowed
}

func (w *twin) looksUnseen() {
	w.t.Helper()
	if _, err := w.metered.Peek(context.Background(), w.key); err != nil {
		w.t.Fatal(err)
	}
}

func (w *twin) resetStats() {
	w.t.Helper()
	if err := w.server.Client().ConfigResetStat(context.Background()).Err(); err != nil {
		w.t.Fatal(err)
	}
}

// calls is how often a command was called since.
func (w *twin) calls(command string) int {
	w.t.Helper()
	stats, err := w.server.Client().Info(context.Background(), "commandstats").Result()
	if err != nil {
		w.t.Fatal(err)
	}
	found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}
