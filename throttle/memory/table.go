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

// shards is a power of two. Each has a lock of its own, so many that two callers who bring
// new keys seldom meet at one.
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

// A shard is the entries of which the first hashes end alike. Its lock is held by whoever adds
// one, removes one or moves one in the queue. It is as long as a line of the processor's cache,
// so that no two shards' locks are in one.
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

// An entry is what is kept of one key. All of it but its place is changed with its lock held, and
// whose it is with the shard's as well. Who wants both takes the shard's first. Only the last no
// is read without, and with it the sends of a Tiers.
//
// What is needed to find an entry and to lock it comes first, and next what is counted: an
// admission takes as long as these lines of memory take to come, with many keys from where they
// lie, and with one that all ask for from another core. Up to the counts of a Limiter it is one
// line, together with the word that the runtime puts before a block.
type entry[S any] struct {
	sync.Mutex
	fingerprint // its key's; the zero one, which is no key's, when it is removed
	no          lastNo
	state       S
	said        said   // by the last no
	spot        uint32 // in the index, from 1 on
	place       int32  // in the queue, or nowhere; it is the shard's lock that guards it
}

// nowhere is the place of an entry that is not in the queue yet.
const nowhere = -1

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
		if no, turn, found := e.no.read(&e.said, v.of(k)); found {
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

// lock returns the key's entry, locked, nil if there is none, and the clock that counts. It
// looks for the entry only where it is not the likely one. The clock was read before, as that
// takes as long as all that is done with the lock.
func (t *table[S]) lock(k fingerprint, likely *entry[S], now int64) (*entry[S], int64) {
	if likely.lockFor(k) {
		return likely, now
	}
	s, e, now := t.lockBoth(k, now)
	s.Unlock()
	return e, now
}

// lockFor locks the entry if it is there and the key's.
func (e *entry[S]) lockFor(k fingerprint) bool {
	if e == nil {
		return false
	}
	e.Lock()
	if e.is(k) {
		return true
	}
	e.Unlock()
	return false
}

// lockNow is lockBoth for who has only the key.
func (t *table[S]) lockNow(key string) (*shard[S], *entry[S], int64) {
	return t.lockBoth(t.fingerprint(key), t.now())
}

// lockBoth locks the key's shard and its entry, if there is one, and returns the clock that
// counts. Where somebody has meanwhile swept there by a later clock it is read again: what had
// expired by then is gone, and must not be missed at an older clock.
func (t *table[S]) lockBoth(k fingerprint, now int64) (*shard[S], *entry[S], int64) {
	s := &t.shards[k.first%shards]
	s.Lock()
	if now < s.swept {
		now = t.now()
	}
	return s, s.lock(k), now
}

// lock locks the key's entry in a shard that is locked, and returns it; nil if there is none.
func (s *shard[S]) lock(k fingerprint) *entry[S] {
	e := s.index.Load().find(k)
	if e != nil {
		e.Lock()
	}
	return e
}

// unlock unlocks what there is of the two.
func unlock[S any](s *shard[S], e *entry[S]) {
	if e != nil {
		e.Unlock()
	}
	if s != nil {
		s.Unlock()
	}
}

// say remembers that this was said.
func (e *entry[S]) say(whose uint64, no throttle.Refusal) { e.no.say(&e.said, whose, no) }

func (e *entry[S]) is(k fingerprint) bool { return e.fingerprint == k }

// lockOrAdd is lock, and makes an entry with a clear state where there is none. Then its shard
// is locked, too, and else nil: unlock is for both. Its caller keeps that entry before, as the
// first send of a key is always admitted. After an error nothing is locked.
func (t *table[S]) lockOrAdd(k fingerprint, likely *entry[S], now int64) (s *shard[S], e *entry[S], clock int64, err error) {
	if likely.lockFor(k) {
		return nil, likely, now, nil
	}
	if s, e, now = t.lockBoth(k, now); e != nil {
		s.Unlock()
		return nil, e, now, nil
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
	if e, now = t.lock(k, nil, t.now()); e != nil {
		return nil, e, now, nil
	}
	if !t.makeRoom() {
		return nil, nil, 0, ErrFull
	}
	if s, e, now = t.lockBoth(k, t.now()); e != nil {
		t.kept.Add(-1) // somebody was faster, who had found a place free
		s.Unlock()
		return nil, e, now, nil
	}
	return s, t.add(s, k, now), now, nil
}

// add makes an entry, for which there is a place, and locks it.
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
		e.Lock()
		until := t.kind.until(&e.state)
		expired := until <= then
		if expired {
			s.swept = max(s.swept, then)
			t.remove(s, e)
		}
		e.Unlock()
		if expired {
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

// add makes an entry, and locks it.
func (s *shard[S]) add(k fingerprint) *entry[S] {
	x := s.index.Load().withRoom()
	s.index.Store(x)
	return x.add(k)
}

// keep keeps an entry that has changed until its state says nothing any more. A new one, whose
// shard is locked, is put in the queue. Of another, when it was due is soon enough to see that this
// is later than before: so an admission moves no entry in the queue. Where it may be sooner, hasten
// is for it.
func (t *table[S]) keep(s *shard[S], e *entry[S]) {
	e.no.takeBack()
	if s != nil {
		s.due.add(e, t.kind.until(&e.state))
	}
}

// hastenKey is hasten for who had only the entry's lock, and has let it go.
func (t *table[S]) hastenKey(k fingerprint) {
	s := &t.shards[k.first%shards]
	s.Lock()
	e := s.lock(k)
	if e != nil {
		t.hasten(s, e)
	}
	unlock(s, e)
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
}
