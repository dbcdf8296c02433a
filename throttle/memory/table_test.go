package memory

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Keys that share a hash, which no test can find, are told apart all the same, and those
// that share a slot are found however the others come and go.
func TestIndex(t *testing.T) {
	const seed, homes = 4, 7 // the last slots and the first, of however many
	random := rand.New(rand.NewPCG(seed, 0))
	table := newTable(Options{}, moments)
	s := &table.shards[0]
	known := map[fingerprint]int64{}
	for step := range int64(20_000) {
		k := fingerprint{first: random.Uint64N(2)<<63 | shards*(61+random.Uint64N(homes)), second: random.Uint64N(4)}
		e := s.index.Load().find(k)
		if state, ok := known[k]; ok != (e != nil) || ok && state != e.state {
			t.Fatalf("seed %d step %d: found %v, want %d, %v", seed, step, e, state, ok)
		}
		if e == nil {
			if e = s.add(k); e.state != 0 || e.no.whose.Load() != 0 {
				t.Fatalf("seed %d step %d: a new entry has what another left, %d, %d", seed, step, e.state, e.no.whose.Load())
			}
			e.state, known[k] = step, step
			table.keep(s, e)
			e.say(1, throttle.Refusal{Until: step})
			e.Unlock()
		} else if random.IntN(3) > 0 {
			table.remove(s, e)
			delete(known, k)
		}
	}
	for len(s.due) > 0 {
		table.remove(s, s.due[0].entry)
	}
	for _, left := range s.due[:cap(s.due)] {
		if left.entry != nil {
			t.Fatal("the queue keeps the memory of an entry that is gone")
		}
	}
	x := s.index.Load()
	for i := range x.slots {
		if x.slots[i].Load() != 0 {
			t.Errorf("slot %d of %d is not free", i, len(x.slots))
		}
	}
	for n := range x.blocks {
		if x.blocks[n].Load() != nil || !slices.Contains(append(x.roomy, x.empty...), uint32(n)) {
			t.Errorf("block %d of %d was not let go, or has no room", n, len(x.blocks))
		}
	}
	if len(x.slots) > 128 || len(x.roomy)+len(x.empty) != len(x.blocks) {
		t.Errorf("%d slots, %d and %d of %d blocks with room", len(x.slots), len(x.roomy), len(x.empty), len(x.blocks))
	}
}

// What is added comes into blocks that are there, before one is made for it.
func TestHalfEmptyBlocksAreFilledFirst(t *testing.T) {
	table := newTable(Options{}, moments)
	s, all := &table.shards[0], []*entry[int64]{}
	add := func(n uint64) {
		all = append(all, table.added(s, fingerprint{first: n * shards}))
	}
	for n := range uint64(4 * perBlock) {
		add(n)
	}
	for i := range 2 * perBlock { // two are emptied, and of two one is left each
		table.remove(s, all[i])
		if i%perBlock > 0 {
			table.remove(s, all[2*perBlock+i])
		}
	}
	blocks := func() (n int) {
		x := s.index.Load()
		for i := range x.blocks {
			if x.blocks[i].Load() != nil {
				n++
			}
		}
		return n
	}
	for n := range uint64(2 * (perBlock - 1)) {
		if add(100 + n); blocks() != 2 {
			t.Fatalf("%d blocks for %d keys", blocks(), 2+n+1)
		}
	}
	if add(1000); blocks() != 3 {
		t.Errorf("%d blocks when two were full", blocks())
	}
}

// Entries come and go, and their memory is another's, while many look for what was said
// without the lock: what they find was said to whom they ask for, as a whole.
func TestWhatIsFoundWithoutTheLock(t *testing.T) {
	const keys, enough, lookers = 300, 10_000, 3
	steps := int64(20_000)
	if testing.Short() {
		steps /= 4
	}
	table := newTable(Options{}, moments)
	of := func(n uint64) fingerprint { return fingerprint{first: n * shards, second: n} }
	var stop atomic.Bool
	var found atomic.Int64
	var done sync.WaitGroup
	for range lookers {
		done.Go(func() {
			for n := uint64(1); !stop.Load(); n = n%keys + 1 {
				_, no, _ := table.refused(of(n), 0)
				if no.Until == 0 {
					continue
				}
				found.Add(1)
				if no.Since%1000 != int64(n) || no.Until != -no.Since || no.IDs != throttle.IDs(no.Since) {
					t.Errorf("to %d it was said: %+v", n, no)
					return
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 1))
	for step := int64(0); step < steps || found.Load() < enough && !t.Failed(); step++ {
		n := 1 + random.Uint64N(1+uint64(min(step, steps)*(keys-1)/steps)) // ever more
		s, e, _ := table.lockBoth(of(n), 0)
		switch {
		case e == nil:
			e = s.add(of(n))
			table.keep(s, e)
		case random.IntN(3) == 0:
			table.remove(s, e)
		default:
			since := 1000*step + int64(n)
			e.say(n, throttle.Refusal{Since: since, Until: -since, IDs: throttle.IDs(since)})
		}
		unlock(s, e)
	}
	stop.Store(true)
	done.Wait()
}

// A no that is remembered is said again while somebody else has the locks.
func TestANoNeedsNoLock(t *testing.T) {
	p := throttletest.Policy(t, "minute=1/60s")
	m, err := meter.NewFixedWindow(p.Tiers()[0])
	if err != nil {
		t.Fatal(err)
	}
	now := Options{Now: func() int64 { return 60_000 }}
	first, other := throttle.ID([]byte("AAAAAAAA")), throttle.ID([]byte("BBBBBBBB"))
	type answer struct {
		allowed bool
		wait    int64
	}
	takes := func(l throttle.Limiter, id throttle.ID) func() (answer, error) {
		return func() (answer, error) {
			v, err := l.Take(t.Context(), "key", id)
			return answer{v.Allowed, v.Wait}, err
		}
	}
	counts := func(l *Limiter) func() (answer, error) {
		return func() (answer, error) {
			r, err := l.Count(t.Context(), "key")
			return answer{r.Allowed, r.Wait}, err
		}
	}
	taken, counted, both, keeping := New(m, now), New(m, now), New(m, now), NewTiers(p, now)
	for name, tt := range map[string]struct {
		limiter    throttle.Limiter
		lock       func() (unlock func())
		fill, deny func() (answer, error)
	}{
		"takes":               {taken, locked(taken.states), takes(taken, first), takes(taken, other)},
		"counts":              {counted, locked(counted.states), counts(counted), counts(counted)},
		"a take and a count":  {both, locked(both.states), takes(both, first), counts(both)},
		"takes that are kept": {keeping, locked(keeping.histories), takes(keeping, first), takes(keeping, other)},
	} {
		t.Run(name, func(t *testing.T) {
			if a, err := tt.fill(); !a.allowed || err != nil {
				t.Fatal(a, err)
			}
			no := answer{wait: 60_000}
			if a, err := tt.deny(); a != no || err != nil {
				t.Fatal(a, err)
			}
			letGo := tt.lock()
			answered := make(chan bool, 1)
			go func() {
				a, err1 := tt.deny()
				v, err2 := tt.limiter.Peek(context.Background(), "key")
				answered <- a == no && !v.Allowed && v.Wait == no.wait && err1 == nil && err2 == nil
			}()
			select {
			case right := <-answered:
				if !right {
					t.Error("something else was said")
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits for a lock")
			}
			letGo()
		})
	}
}

// Who asks about a key that is known does not wait for one who adds another.
func TestAKnownKeyWaitsForNoOther(t *testing.T) {
	hour := throttletest.Policy(t, "hour=10/1h")
	m, err := meter.NewFixedWindow(hour.Tiers()[0])
	if err != nil {
		t.Fatal(err)
	}
	counting, keeping := New(m, Options{}), NewTiers(hour, Options{})
	for name, tt := range map[string]struct {
		limiter throttle.Limiter
		others  sync.Locker
	}{
		"meter": {counting, &counting.states.shards[counting.states.fingerprint("key").first%shards]},
		"tiers": {keeping, &keeping.histories.shards[keeping.histories.fingerprint("key").first%shards]},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tt.limiter.Take(t.Context(), "key", throttle.NewID()); err != nil {
				t.Fatal(err)
			}
			tt.others.Lock()
			left := make(chan int, 1)
			go func() {
				_, err1 := tt.limiter.Take(context.Background(), "key", throttle.NewID())
				v, err2 := tt.limiter.Peek(context.Background(), "key")
				if err1 != nil || err2 != nil {
					t.Error(err1, err2)
				}
				left <- v.Tiers()[0].Remaining
			}()
			select {
			case n := <-left:
				if n != 8 {
					t.Errorf("%d are left, want 8", n)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits for the others")
			}
			tt.others.Unlock()
		})
	}
}

// locked locks all there is to lock of the key.
func locked[S any](t *table[S]) func() (letGo func()) {
	return func() func() {
		s, e, _ := t.lockNow("key")
		return func() { unlock(s, e) }
	}
}

// Who reads a no while it is written, or before, does not go by it.
func TestLastNo(t *testing.T) {
	var e entry[int64]
	l, say := &e.no, e.say
	read := func(whose uint64) (throttle.Refusal, uint64, bool) { return l.read(&e.said, whose) }
	no := throttle.Refusal{Since: 3, Until: 7, IDs: 1, Tier: 2}
	if _, turn, found := read(9); found || !l.still(turn) {
		t.Error("a no that was never said")
	}
	for range 3 {
		_, before, _ := read(9)
		say(9, no)
		got, turn, found := read(9)
		if l.still(before) || !found || got != no || !l.still(turn) {
			t.Errorf("said %+v, read %+v, %v", no, got, found)
		}
		say(9, no)
		if !l.still(turn) {
			t.Error("written anew though it was there")
		}
		if _, _, found := read(8); found {
			t.Error("read by somebody else")
		}
		earlier := no
		earlier.Since--
		if say(9, earlier); !l.still(turn) { // the clock has stepped back
			got, _, _ = read(9)
		}
		if got != earlier {
			t.Errorf("said since %d, read %+v", earlier.Since, got)
		}
		l.takeBack()
		if _, _, found := read(9); found || l.still(turn) {
			t.Error("read when it had been taken back")
		}
	}
	say(9, throttle.Refusal{Since: 3, Until: 7, IDs: throttle.AnyID})
	if _, _, found := read(9); found {
		t.Error("remembered though any id may be admitted")
	}
	say(9, no)

	l.turn.Add(1) // somebody has begun to write
	if _, _, found := read(9); found {
		t.Error("read while it is written")
	}
}

// What was likely a key's entry may meanwhile have been removed, or be another's.
func TestALikelyEntryIsLookedAtAgain(t *testing.T) {
	table := newTable(Options{}, moments)
	s := &table.shards[0]
	k, other := fingerprint{first: shards, second: 1}, fingerprint{first: shards, second: 2} // of one tag
	likely := func() *entry[int64] {
		e, _, _ := table.refused(k, 0)
		return e
	}
	found := func(likely *entry[int64]) *entry[int64] {
		e, _ := table.lock(k, likely, 0)
		unlock(nil, e)
		return e
	}
	add := func(k fingerprint) *entry[int64] { return table.added(s, k) }
	if e := likely(); e != nil || found(e) != nil {
		t.Error("found where nothing is")
	}
	before := add(other)
	mine := add(k)
	if e := likely(); e != before || found(e) != mine {
		t.Error("another's was taken for the key's")
	}
	table.remove(s, mine)
	if e := found(mine); e != nil {
		t.Error("found what was removed")
	}
	if add(fingerprint{first: shards, second: 3}) != mine || found(mine) != nil {
		t.Error("found what is another's now")
	}
	again := add(k)
	if found(mine) != again || found(again) != again {
		t.Error("not found where it is now")
	}
	for n := range uint64(100) { // the index grows
		add(fingerprint{first: (n + 2) * shards, second: n})
	}
	if found(again) != again {
		t.Error("not found in a larger index")
	}
	for len(s.due) > 0 {
		table.remove(s, s.due[0].entry)
	}
	if found(again) != nil {
		t.Error("found in a block that is gone")
	}
}

// Between the no and the sends that it is about somebody may change them: then there is none.
func TestSendsBelongToTheirNo(t *testing.T) {
	p := throttletest.Policy(t, "minute=1/60s")
	l := NewTiers(p, Options{})
	ctx, id, k := t.Context(), throttle.NewID(), l.histories.fingerprint("key")
	for _, id := range []throttle.ID{id, throttle.NewID()} {
		if _, err := l.Take(ctx, "key", id); err != nil {
			t.Fatal(err)
		}
	}
	e, no, turn := l.histories.refused(k, l.view)
	if said, sends := sendsOf(e, no, turn); said.Until == 0 || len(sends) != 1 {
		t.Fatalf("%+v, %v", said, sends)
	}
	if released, err := l.Release(ctx, "key", id); !released || err != nil {
		t.Fatal(released, err)
	}
	if said, sends := sendsOf(e, no, turn); said.Until != 0 || sends != nil {
		t.Errorf("%+v, %v", said, sends)
	}
}

// However the moments change at which entries expire, sweeping removes exactly those
// that have.
func TestSweepFindsTheExpired(t *testing.T) {
	table := newTable(Options{Keys: 1 << 10}, moments)
	s := &table.shards[0]
	var until []int64
	for i := range 1000 {
		e := s.add(fingerprint{first: uint64(i), second: uint64(i)})
		e.state = int64(i*7919) % 1000
		table.keep(s, e)
		for _, moment := range []int64{int64(i*104729) % 1000, int64(i*611953) % 1000} {
			e.state = moment
			table.hasten(s, e)
		}
		e.Unlock()
		if i%3 == 0 {
			table.remove(s, s.due[len(s.due)*i/1000].entry) // it, or another
		}
	}
	for _, x := range s.due {
		until = append(until, x.entry.state)
	}
	slices.Sort(until)
	left := len(until)
	for now := range int64(1001) {
		for table.sweep(s, now) {
			left--
		}
		if want := len(until) - len(upTo(until, now)); left != want {
			t.Fatalf("at %d %d are left, want %d", now, left, want)
		}
	}
}

// A key that comes again soon after it has expired finds its entry, while there is much room;
// and not for long.
func TestTheExpiredLinger(t *testing.T) {
	const keys = 6
	now := int64(5000)
	table := newTable(Options{Keys: keys, Now: func() int64 { return now }}, moments)
	of := func(n uint64) fingerprint { return fingerprint{first: n * shards, second: n} }
	come := func(n uint64) {
		s, e, _, err := table.lockOrAdd(of(n), nil, now)
		if err != nil {
			t.Fatal(err)
		}
		e.state = now
		table.keep(s, e)
		unlock(s, e)
	}
	there := func() (all []uint64) {
		for n := range uint64(10) {
			if e, _ := table.lock(of(n), nil, now); e != nil {
				all = append(all, n)
				e.Unlock()
			}
		}
		return all
	}
	come(1)
	now += linger - 1
	if come(2); !slices.Equal(there(), []uint64{1, 2}) {
		t.Errorf("gone too soon: %d are there", there())
	}
	now++
	if come(3); !slices.Equal(there(), []uint64{2, 3}) {
		t.Errorf("there for too long: %d are", there())
	}
	if come(4); !slices.Equal(there(), []uint64{2, 3, 4}) {
		t.Errorf("gone too soon: %d are there", there())
	}
	if come(5); len(there()) != 2 { // it takes more than half of the places, and two go for it
		t.Errorf("half of the places were taken by what has expired, and %d are there", there())
	}
}

// Two bring one new key to a full table. While the first makes room another key is forgotten,
// and the second takes that place: the one that was made is not promised to anybody any more.
func TestAPlaceThatWasMadeInVain(t *testing.T) {
	var table *table[int64]
	of := func(n uint64) fingerprint { return fingerprint{first: n, second: n} }
	come := func(n uint64, until int64) {
		s, e, _, err := table.lockOrAdd(of(n), nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		e.state = until
		table.keep(s, e)
		unlock(s, e)
	}
	readings := 0
	table = newTable(Options{Keys: 2, Now: func() int64 {
		if readings++; readings == 3 { // room is made
			s, e, _ := table.lockBoth(of(2), 10)
			table.forget(s, e)
			unlock(s, e)
			come(3, 30)
		}
		return 10
	}}, moments)
	come(1, 10)
	come(2, 30)
	come(3, 20)
	if e, _ := table.lock(of(3), nil, 10); e.state != 20 || table.kept.Load() != 1 {
		t.Errorf("%d places are taken by one key, and it has %d", table.kept.Load(), e.state)
	}
}

// moments are states that stand for when they expire.
var moments = kind[int64]{
	until: func(moment *int64) int64 { return *moment },
	clear: func(moment *int64) { *moment = 0 },
}

// added is a new entry, kept and unlocked.
func (t *table[S]) added(s *shard[S], k fingerprint) *entry[S] {
	e := s.add(k)
	t.keep(s, e)
	e.Unlock()
	return e
}

// upTo is those of sorted moments that are not after now.
func upTo(sorted []int64, now int64) []int64 {
	n, _ := slices.BinarySearch(sorted, now+1)
	return sorted[:n]
}

// Somebody reads the clock, waits for the lock, and is late: another has swept by a later
// clock what had not expired by his. He decides by a clock that is as late.
func TestALateCallerReadsTheClockAgain(t *testing.T) {
	var table *table[int64]
	readings := 0
	table = newTable(Options{Keys: 8, Now: func() int64 {
		if readings++; readings == 1 {
			for i := range table.shards {
				table.sweep(&table.shards[i], 20) // meanwhile, by another
			}
			return 9
		}
		return 21
	}}, moments)
	s := &table.shards[table.fingerprint("key").first%shards]
	old := s.add(table.fingerprint("key"))
	old.state = 20
	table.keep(s, old)
	old.Unlock()
	_, e, now := table.lockNow("key")
	if e != nil || now != 21 {
		t.Errorf("%v at %d, want nothing at 21", e, now)
	}
}
