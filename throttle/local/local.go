// Package local is the throttle.Limiter of one process.
//
// A [Limiter] admits by a policy and keeps the history of each mailbox. [Meters] keeps
// the states of meters, for limits that count in another way. Either can serve any
// number of limits at once, each under its name: [Limiter.Tiers], [Meters.Limiter].
//
//	disk, err := cache.Open(cache.DiskOptions{Dir: "history"})
//	...
//	defer disk.Close() // after what is on it
//	mailboxes, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy()})
//	...
//	defer mailboxes.Close()
//	meters, err := local.NewMeters(disk, local.MetersOptions{})
//	...
//	defer meters.Close()
//	visitors := meters.Limiter("visitors", minute) // a meter of package meter
//
// Histories and states live in a cache.Map: in memory while there is room, on disk
// always. A denial of a key in memory takes no lock and allocates nothing; an admission
// is on disk before the answer is yes.
//
// A call waits for others of its key no longer than its context lasts, and is dated when
// its turn has come. What it has begun to read or write on the disk it waits for: a drive
// that hangs holds those calls until it answers, beyond their contexts. That is one call
// for each of about a thousand parts of the keys; whoever waits for them does not have to.
package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/clock"
	"github.com/mailgate/mailgate/throttle"
)

// Options say what to admit and what to remember in memory.
type Options struct {
	Policy throttle.Policy
	// Name keeps several limiters on one disk apart, and only one at a time can have it.
	// The default is "mailbox".
	Name string
	// Size is how much is kept in memory; the default is cache.DefaultSize.
	Size cache.Size
	// Now reads the clock; the default is clock.Now.
	Now func() int64
}

// A Limiter admits sends by one policy. It implements throttle.Historian and
// throttle.Recorder.
type Limiter struct {
	policy    throttle.Policy
	named     string // what the keys of a limiter with a name begin with
	histories *sharedMap[throttle.History]
	now       func() int64
	derived   bool // by Tiers from the limiter that New opened
}

// New opens the limiter whose histories are on the disk. The disk stays the caller's
// to close, after the limiter.
func New(disk *cache.Disk, o Options) (*Limiter, error) {
	if o.Policy.IsZero() {
		return nil, errors.New("opening a limiter: the policy has no tiers")
	}
	if o.Name == "" {
		o.Name = "mailbox"
	}
	histories, err := openMap(disk, o.Name, historyCodec{}, o.Size)
	if err != nil {
		return nil, fmt.Errorf("opening a limiter: %w", err)
	}
	return &Limiter{policy: o.Policy, histories: histories, now: orMachine(o.Now)}, nil
}

// Take admits one send, or says no. A no is known from memory as a rule, without a
// lock. Everything else takes the mailbox's lock, and decides there.
func (l *Limiter) Take(ctx context.Context, mailbox string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, throttle.WrongID("take")
	}
	if err := throttle.CheckCall(ctx, "take", mailbox); err != nil {
		return v, err
	}
	if l.refuses(&v, mailbox, id) {
		return v, nil
	}
	return l.admit(ctx, mailbox, id)
}

// refuses reports whether what is in memory says no to a reservation that is not on record.
// Then v is that verdict; else it is of no use.
func (l *Limiter) refuses(v *throttle.Verdict, mailbox string, id throttle.ID) bool {
	now := l.now()
	brief, history, found := l.histories.glance(l.part(mailbox), mailbox, now)
	if only, ok := onlySend(brief, now); ok {
		l.policy.SpellOne(v, only, now)
		return !v.Allowed && only.ID != id
	}
	if !found {
		return false
	}
	l.policy.Spell(v, history, now)
	return !v.Allowed && history.Find(id) < 0
}

// admit decides with the mailbox's lock held, as of the moment it is, and records a yes.
func (l *Limiter) admit(ctx context.Context, mailbox string, id throttle.ID) (v throttle.Verdict, err error) {
	err = l.edit(ctx, "take", mailbox, func(h throttle.History, now int64) cache.Edit[throttle.History] {
		if l.live(h, now).Find(id) >= 0 {
			v = throttle.Admitted(l.policy, h, now)
			return cache.Keep[throttle.History]()
		}
		if v = throttle.Decide(l.policy, h, now); !v.Allowed {
			return cache.Keep[throttle.History]()
		}
		next := h.With(l.policy, id, now)
		v = throttle.Admitted(l.policy, next, now)
		return l.put(next)
	})
	if err != nil {
		return throttle.Verdict{}, err
	}
	return v, nil
}

// Peek answers what Take would.
func (l *Limiter) Peek(ctx context.Context, mailbox string) (throttle.Verdict, error) {
	history, now, err := l.read(ctx, "peek", mailbox)
	if err != nil {
		return throttle.Verdict{}, err
	}
	return throttle.Decide(l.policy, history, now), nil
}

// Record puts on record what was admitted elsewhere; see throttle.Recorder.
func (l *Limiter) Record(ctx context.Context, mailbox string, a throttle.Admission) error {
	if err := throttle.CheckRecord(ctx, mailbox, a); err != nil {
		return err
	}
	return l.edit(ctx, "record", mailbox, func(h throttle.History, now int64) cache.Edit[throttle.History] {
		next, changed := h.Including(l.policy, a, now)
		if !changed {
			return cache.Keep[throttle.History]()
		}
		return l.put(next)
	})
}

// Release gives one admission back.
func (l *Limiter) Release(ctx context.Context, mailbox string, id throttle.ID) (released bool, err error) {
	err = l.edit(ctx, "release", mailbox, func(h throttle.History, _ int64) cache.Edit[throttle.History] {
		next, found := h.Without(id)
		released = found
		switch {
		case !found:
			return cache.Keep[throttle.History]()
		case len(next) == 0:
			return cache.Remove[throttle.History]()
		}
		return l.put(next)
	})
	return released && err == nil, err
}

// Reset forgets the mailbox, also what has expired by a clock that may yet step back.
func (l *Limiter) Reset(ctx context.Context, mailbox string) (cleared int, err error) {
	err = l.edit(ctx, "reset", mailbox, func(h throttle.History, now int64) cache.Edit[throttle.History] {
		cleared = len(l.live(h, now))
		return cache.Remove[throttle.History]()
	})
	if err != nil {
		return 0, err
	}
	return cleared, nil
}

// History returns the sends inside the longest window.
func (l *Limiter) History(ctx context.Context, mailbox string) (throttle.History, error) {
	history, now, err := l.read(ctx, "history", mailbox)
	if err != nil {
		return nil, err
	}
	return slices.Clone(l.live(history, now)), nil // others read the one in memory
}

// Ready says whether an admission could be recorded now, by a write to the disk. It is
// made for health checks and takes no mailbox's lock; cache.Disk.Ready says how old an
// answer may be.
func (l *Limiter) Ready(ctx context.Context) error { return ready(ctx, l.histories) }

// Close waits for calls that are under way. Later ones fail, also those of what Tiers
// has returned. What is in memory goes, and goroutines end, at a garbage collection after
// that; see cache.Map. Of a limiter that Tiers returned it does nothing: that ends with the one it
// came from.
func (l *Limiter) Close() {
	if !l.derived {
		l.histories.Close()
	}
}

func (l *Limiter) read(ctx context.Context, doing, mailbox string) (throttle.History, int64, error) {
	if err := throttle.CheckCall(ctx, doing, mailbox); err != nil {
		return nil, 0, err
	}
	history, _, now, err := l.histories.get(ctx, l.part(mailbox), mailbox, l.now)
	if err != nil {
		return nil, 0, throttle.Unchanged(throttle.Unavailable(doing, err))
	}
	return history, now, nil
}

// edit lets change replace the history, of which it is shown what has not expired at
// the clock it is shown. That is read with the mailbox's lock held: who had it before may
// have waited for the drive.
func (l *Limiter) edit(ctx context.Context, doing, mailbox string, change func(h throttle.History, now int64) cache.Edit[throttle.History]) error {
	if err := throttle.CheckCall(ctx, doing, mailbox); err != nil {
		return err
	}
	err := l.histories.update(ctx, l.part(mailbox), mailbox, l.now, func(h throttle.History, _ bool, now int64) cache.Edit[throttle.History] {
		return change(h, now)
	})
	return unavailable(doing, err)
}

func (l *Limiter) live(h throttle.History, now int64) throttle.History {
	return h.Within(l.policy.Longest(), now)
}

// put keeps a history until its newest send has left the longest window.
func (l *Limiter) put(h throttle.History) cache.Edit[throttle.History] {
	return cache.Put(h, h.Newest()+l.policy.Longest())
}

// unavailable is the error of a change that failed for this reason, and nil without one.
func unavailable(doing string, err error) error {
	if err == nil {
		return nil
	}
	failure := throttle.Unavailable(doing, err)
	if errors.Is(err, cache.ErrUnchanged) {
		return throttle.Unchanged(failure)
	}
	return failure
}

// orMachine is the clock that was handed in, or else the machine's.
func orMachine(now func() int64) func() int64 {
	if now != nil {
		return now
	}
	return clock.Now
}

func ready(ctx context.Context, m interface{ Ready(context.Context) error }) error {
	if err := m.Ready(ctx); err != nil {
		return throttle.Unavailable("asking the disk", err)
	}
	return nil
}
