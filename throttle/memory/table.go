package memory

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/mailgate/mailgate/throttle"
)

// ErrFull is the cause of a Take or a Count that failed because Options.Keys other keys are on
// record and all still count. It comes wrapped, with throttle.ErrUnavailable.
var ErrFull = errors.New("as many keys as Options.Keys has room for still count")

// shards is a power of two. Each has a lock of its own, so many that two callers seldom
// meet at one.
const shards = 256

// sweeps is how many entries an insertion removes at most: more than it adds, so that those
// that have expired become fewer.
const sweeps = 2

// linger is how many milliseconds an entry has been expired for when an insertion removes
// it, while no more than half of the places are taken: a key that is asked about all the time
// comes again until then, and finds it.
const linger = 1000

// A table keeps a state S for each of a bounded number of keys, until it expires.
type table[S any] struct {
	first, second maphash.Seed
	most          int64
	now           func() int64
	kind          kind[S]
	shards        [shards]shard[S]
	kept          atomic.Int64 // entries, and places promised to some
	full          sync.Mutex   // of who needs the place of another
}

// A kind is what a table has to know of its states.
type kind[S any] struct {
	until func(*S) int64 // when one says nothing any more, as far as is known yet
	clear func(*S)       // makes one that of a key nothing is known of, and lets its memory go
}

// A shard is the entries of which the first hashes end alike. It is as long as a line of
// the processor's cache, so that no two shards' locks are in one.
type shard[S any] struct {
	sync.Mutex
	index atomic.Pointer[index[S]]
	due   queue[S]
	swept int64 // the latest clock that something was removed by
	_     [2]int64
}

// A fingerprint stands for a key; the key itself is not kept. Nobody outside this process
// can look for two keys that share 128 secret bits.
type fingerprint struct{ first, second uint64 }

// An entry is what is kept of one key. All of it is changed with the shard's lock held. Only
// the last no is read without, and with it the sends of a Tiers.
type entry[S any] struct {
	first, second uint64 // its fingerprint
	place         int32  // in the queue, or added, or gone
	spot          uint32 // in the index
	no            lastNo
	state         S
}

// The place of an entry that is not in the queue yet, and of one that is removed.
const (
	added = -1
	gone  = -2
)

func newTable[S any](o Options, k kind[S]) *table[S] {
	return &table[S]{
		first: maphash.MakeSeed(), second: maphash.MakeSeed(),
		most: min(int64(o.Keys), mostKeys), now: o.Now, kind: k,
	}
}

func (t *table[S]) fingerprint(key string) fingerprint {
	return fingerprint{maphash.String(t.first, key), maphash.String(t.second, key)}
}

// refused is the entry that is likely the key's, for lock to look at, the last no that this view
// said to the key, if it is known, and the turn at which it was read; then the entry is the one
// that has it. Nothing is locked. Of the key's secret bits it looks at those that choose the
// slot, and at all 64 of the second hash.
func (t *table[S]) refused(k fingerprint, v view) (likely *entry[S], no throttle.Refusal, turn uint64) {
	x := t.shards[k.first%shards].index.Load()
	if x == nil {
		return nil, no, 0
	}
	likely, i := x.seek(k.first, x.home(k.first))
	for e := likely; e != nil; e, i = x.seek(k.first, i) {
		if no, turn, found := e.no.read(v.of(k)); found {
			return e, no, turn
		}
	}
	return likely, throttle.Refusal{}, 0
}

// A view stands for one way to count on the same states.
type view uint64

// viewOf is the view of a meter or a policy that is written so.
func (t *table[S]) viewOf(text string) view { return view(maphash.String(t.first, text)) }

// of is the view of one key.
func (v view) of(k fingerprint) uint64 { return k.second + uint64(v) }

// lockNow is lock for who has not read the clock.
func (t *table[S]) lockNow(key string) (*shard[S], *entry[S], int64) {
	return t.lock(t.fingerprint(key), nil, t.now())
}

// lock returns the key's shard, locked, its entry, nil if there is none, and the clock. It
// looks for the entry only where it is not the likely one. The clock was read before, as that
// takes as long as all that is done with the lock; where somebody has meanwhile swept by a
// later one it is read again: what had expired by then is gone, and must not be missed at an
// older clock.
func (t *table[S]) lock(k fingerprint, likely *entry[S], now int64) (*shard[S], *entry[S], int64) {
	s := &t.shards[k.first%shards]
	s.Lock()
	if now < s.swept {
		now = t.now()
	}
	if likely != nil && likely.place != gone && likely.is(k) {
		return s, likely, now
	}
	return s, s.index.Load().find(k), now
}

func (e *entry[S]) is(k fingerprint) bool { return e.first == k.first && e.second == k.second }

// lockOrAdd is lock, and makes an entry with a clear state where there is none. Its caller
// keeps that before unlocking, as the first send of a key is always admitted. After an
// error nothing is locked.
func (t *table[S]) lockOrAdd(k fingerprint, likely *entry[S], now int64) (s *shard[S], e *entry[S], clock int64, err error) {
	if s, e, now = t.lock(k, likely, now); e != nil {
		return s, e, now, nil
	}
	if t.reserve() {
		return s, t.add(s, k, now), now, nil
	}
	s.Unlock() // one lock at a time, or two callers could wait for each other
	return t.lockOrReplace(k)
}

// lockOrReplace is lockOrAdd in a full table. One caller at a time is here: of many who
// bring one new key the first makes room, and the others find it.
func (t *table[S]) lockOrReplace(k fingerprint) (s *shard[S], e *entry[S], now int64, err error) {
	t.full.Lock()
	defer t.full.Unlock()
	if s, e, now = t.lock(k, nil, t.now()); e != nil {
		return s, e, now, nil
	}
	s.Unlock()
	if !t.makeRoom() {
		return nil, nil, 0, ErrFull
	}
	if s, e, now = t.lock(k, nil, t.now()); e != nil {
		t.kept.Add(-1) // somebody was faster, who had found a place free
		return s, e, now, nil
	}
	return s, t.add(s, k, now), now, nil
}

// add makes an entry, for which there is a place.
func (t *table[S]) add(s *shard[S], k fingerprint, now int64) *entry[S] {
	then := now
	if t.kept.Load() <= t.most/2 {
		then -= linger
	}
	for range sweeps {
		if !t.sweep(s, then) {
			break
		}
		t.kept.Add(-1)
	}
	e := s.add(k)
	t.kind.clear(&e.state)
	return e
}

// reserve promises a place, if there is one.
func (t *table[S]) reserve() bool {
	for {
		kept := t.kept.Load()
		if kept >= t.most {
			return false
		}
		if t.kept.CompareAndSwap(kept, kept+1) {
			return true
		}
	}
}

// makeRoom looks for an entry that has expired, wherever it is, and promises its place.
func (t *table[S]) makeRoom() bool {
	now := t.now()
	for i := range t.shards {
		s := &t.shards[i]
		s.Lock()
		swept := t.sweep(s, now)
		s.Unlock()
		if swept {
			return true
		}
	}
	return t.reserve() // one may have been given back meanwhile
}

// sweep removes an entry of the shard that had expired by then, if there is one. Its place
// stays promised. When one expires is asked anew: a view that was made since may count it
// for longer.
func (t *table[S]) sweep(s *shard[S], then int64) bool {
	for len(s.due) > 0 && s.due[0].due <= then {
		e := s.due[0].entry
		until := t.kind.until(&e.state)
		if until <= then {
			s.swept = max(s.swept, then)
			t.remove(s, e)
			return true
		}
		s.due.move(0, until)
	}
	return false
}

// forget removes an entry.
func (t *table[S]) forget(s *shard[S], e *entry[S]) {
	t.remove(s, e)
	t.kept.Add(-1)
}

// add makes an entry.
func (s *shard[S]) add(k fingerprint) *entry[S] {
	x := s.index.Load().withRoom()
	s.index.Store(x)
	return x.add(k)
}

// keep keeps an entry that has changed until its state says nothing any more. Where that is
// later than before, when it was due is soon enough to see that: so an admission does not
// move an entry in the queue. Where it may be sooner, hasten is for it.
func (t *table[S]) keep(s *shard[S], e *entry[S]) {
	e.no.takeBack()
	if e.place == added {
		s.due.add(e, t.kind.until(&e.state))
	}
}

// hasten is for one that may say nothing any more before it is due.
func (t *table[S]) hasten(s *shard[S], e *entry[S]) {
	if until := t.kind.until(&e.state); until < s.due[e.place].due {
		s.due.move(int(e.place), until)
	}
}

func (t *table[S]) remove(s *shard[S], e *entry[S]) {
	e.no.takeBack()
	t.kind.clear(&e.state)
	s.due.remove(int(e.place))
	s.index.Load().remove(e)
	e.place = gone
}
