package suppression

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// Options say where a List is.
type Options struct {
	// Table has the list on one machine. Beside Redis it has this node's copy, by which it decides when it
	// starts in an outage; it may be nil there, and then such a node decides nothing.
	Table *cache.Table
	// Events has the events that were applied, on one machine, and is needed there.
	Events *cache.Table
	// Redis has the list that several nodes share, under Prefix. Nil on one machine.
	Redis  redis.UniversalClient
	Prefix string
	Now    func() int64 // Unix milliseconds
	Log    *slog.Logger
}

// List is the suppression list. It may be used by any number of goroutines. Every error is
// throttle.ErrUnavailable, apart from that of Page, and names no address.
type List struct {
	o        Options
	key      string // in Redis
	loaded   atomic.Bool
	current  atomic.Pointer[index]
	loading  atomic.Pointer[index] // that is to replace it; nil for none
	synced   time.Time             // when the changes of other nodes were last read
	readAt   atomic.Int64          // the same, by o.Now
	failed   bool                  // the last time
	opening  bool                  // the index has what the copy has, and nothing else
	unshared bool                  // the copy has entries that were written without Redis
	brought  int64                 // of them that Redis lacked
	seed     maphash.Seed
	changing [64]chan struct{} // full while an entry with such a hash changes on one machine

	stop context.CancelFunc
	all  sync.WaitGroup
}

const (
	// syncInterval leaves half a second for the answer, so that a change is known within a second.
	syncInterval  = 500 * time.Millisecond
	sweepInterval = time.Hour
)

var errHalfMade = errors.New("a suppression list needs Redis, or Table and Events")

// Open reads the list, and begins to follow the changes of other nodes. If Redis is away it starts with
// the copy.
func Open(ctx context.Context, o Options) (*List, error) {
	if o.Redis == nil && (o.Table == nil || o.Events == nil) {
		return nil, errHalfMade
	}
	l := &List{o: o, key: o.Prefix + ":{suppressions}", seed: maphash.MakeSeed()}
	l.current.Store(newIndex())
	for i := range l.changing {
		l.changing[i] = make(chan struct{}, 1)
	}
	if o.Table != nil {
		if err := l.readTable(ctx); err != nil {
			return nil, err
		}
		l.loaded.Store(true)
	}
	if o.Redis != nil {
		l.opening = true
		l.sync(ctx)
		l.opening = false
	}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.all.Go(func() { l.follow(ctx) })
	return l, nil
}

// Close ends what Open began. The copy has the last changes then, unless Redis is away.
func (l *List) Close() {
	l.stop()
	l.all.Wait()
	if l.o.Redis != nil && !l.failed {
		ctx, cancel := context.WithTimeout(context.Background(), syncInterval)
		defer cancel()
		l.sync(ctx)
	}
}

func (l *List) readTable(ctx context.Context) error {
	now, into := l.o.Now(), l.current.Load()
	var damaged error
	err := l.o.Table.Each(ctx, func(field string, value []byte) bool {
		var e Entry
		if e, damaged = parse(field, string(value)); damaged == nil {
			into.apply(e, now, 0)
			l.unshared = l.unshared || value[0] == unshared
		}
		return damaged == nil
	})
	if err = errors.Join(err, damaged); err != nil {
		return throttle.Unavailable("reading the suppression list", err)
	}
	return nil
}

// follow forgets what has ended and, in Redis, reads what has changed.
func (l *List) follow(ctx context.Context) {
	sweeps, syncs := time.NewTicker(sweepInterval), time.NewTicker(syncInterval)
	defer sweeps.Stop()
	defer syncs.Stop()
	if l.o.Redis == nil {
		syncs.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweeps.C:
			l.current.Load().sweep(l.o.Now())
		case <-syncs.C:
			l.sync(ctx)
		}
	}
}

var errNotLoaded = errors.New("the suppression list has not been read yet")

// ReadAt returns when the list was last read from Redis; 0 on one machine.
func (l *List) ReadAt() int64 { return l.readAt.Load() }

// Ready returns an error while it is not known who is suppressed.
func (l *List) Ready() error {
	if !l.loaded.Load() {
		return throttle.Unavailable("looking for a suppression", errNotLoaded)
	}
	return nil
}

// Find returns the entries of an address that apply now, in the order of Reasons, without their Source and
// Since. It asks no store.
func (l *List) Find(to address.Address) (found []Entry, err error) {
	if err := l.Ready(); err != nil {
		return nil, err
	}
	in := l.current.Load()
	for i, r := range Reasons {
		subject := r.Subject(to)
		end := in.end(subject, i)
		if end == 0 || end <= l.o.Now() {
			continue
		}
		if end == forever {
			end = 0
		}
		found = append(found, Entry{Address: subject, Reason: r, Until: wire.Moment(end)})
	}
	return found, nil
}

// Detail adds Source and Since to entries that Find returned. While their home is away they stay empty.
func (l *List) Detail(ctx context.Context, found []Entry) {
	for i, e := range found {
		name := field(e.Address, e.Reason)
		var value []byte
		var err error
		if l.o.Redis != nil {
			value, err = l.o.Redis.HGet(ctx, l.key, name).Bytes()
		} else {
			value, err = l.o.Table.Get(ctx, name)
		}
		if kept, damaged := parse(name, string(value)); err == nil && damaged == nil && kept.Until != ended {
			found[i] = kept
		}
	}
}

// Counts returns how many entries there are for each reason. Some may have ended within the last hour.
func (l *List) Counts() map[Reason]int { return l.current.Load().counts() }

// Add suppresses an address from now on, anew if it is already.
func (l *List) Add(ctx context.Context, to address.Address, r Reason, source string) error {
	_, err := l.AddFor(ctx, Event{}, to, r, source)
	return err
}

// Event is what an entry is added for. It is known for Life milliseconds; without a Name it never is.
type Event struct {
	Name string
	Life int64
}

// AddFor is Add unless the event is known, and reports whether it was not. That is one step with the addition, so that
// no repeat of an event brings back what was removed after it.
func (l *List) AddFor(ctx context.Context, event Event, to address.Address, r Reason, source string) (added bool, err error) {
	e := Entry{Address: r.Subject(to), Reason: r, Source: source, Since: wire.Moment(l.o.Now())}
	if life, ends := lifetimes[r]; ends {
		e.Until = e.Since + wire.Moment(life)
	}
	return l.change(ctx, event, e)
}

// Remove removes an address and its mailbox, for all reasons.
func (l *List) Remove(ctx context.Context, to address.Address) error {
	for _, r := range Reasons {
		if err := l.Lift(ctx, to, r); err != nil {
			return err
		}
	}
	return nil
}

// Lift removes an address, or its mailbox, for one reason.
func (l *List) Lift(ctx context.Context, to address.Address, r Reason) error {
	_, err := l.change(ctx, Event{}, Entry{Address: r.Subject(to), Reason: r, Until: ended})
	return err
}

// change writes an entry, or removes it if it has ended, and knows it when it returns. What was done for a known event
// changes nothing.
func (l *List) change(ctx context.Context, event Event, e Entry) (changed bool, err error) {
	if l.o.Redis != nil {
		var position, written int64
		if position, written, err = l.write(ctx, false, event, e); written > 0 {
			l.apply(e, position)
		}
		changed = written >= 0
	} else {
		changed, err = l.changeHere(ctx, event, e)
	}
	if err != nil {
		return false, throttle.Unavailable("changing the suppression list", err)
	}
	return changed, nil
}

// changeHere changes the list on one machine, to the end also if its caller goes.
func (l *List) changeHere(ctx context.Context, event Event, e Entry) (changed bool, err error) {
	if err := ctx.Err(); err != nil { // which the select below may not see
		return false, err
	}
	changing := l.changing[maphash.String(l.seed, field(e.Address, e.Reason))%uint64(len(l.changing))]
	select {
	case changing <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	done := make(chan struct{})
	var did bool
	var failed error
	go func() {
		defer close(done)
		defer func() { <-changing }()
		did, failed = l.commit(context.WithoutCancel(ctx), event, e)
	}()
	select {
	case <-done:
		return did, failed
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// commit changes the table, and the index once that is durable.
func (l *List) commit(ctx context.Context, event Event, e Entry) (changed bool, err error) {
	// note returns whether the event was known, once that is durable.
	note := func(ctx context.Context, value []byte) (known bool, err error) {
		if event.Name == "" {
			return false, nil
		}
		err = l.o.Events.Update(ctx, event.Name, func(old []byte, now int64) ([]byte, int64) {
			if known = old != nil; known {
				value = old
			}
			return value, now + event.Life
		})
		return known, err
	}
	if known, err := note(ctx, nil); err != nil || known {
		return false, err
	}
	batched, durable := cache.Batch(ctx) // of which the event is not kept without the entry
	err = l.o.Table.Update(batched, field(e.Address, e.Reason), func([]byte, int64) ([]byte, int64) {
		if e.Until == ended {
			return nil, 0
		}
		return append([]byte{unshared}, e.value()...), e.end()
	})
	if err == nil {
		_, err = note(batched, []byte{1})
	}
	if err = errors.Join(err, durable(ctx)); err != nil {
		return false, err
	}
	l.apply(e, 0)
	return true, nil
}

func (l *List) apply(e Entry, position int64) {
	now := l.o.Now()
	l.current.Load().apply(e, now, position)
	if next := l.loading.Load(); next != nil {
		next.apply(e, now, position)
	}
}

// PageSize is how many entries a page has at most.
const PageSize = 500

// ErrPage means that a page was asked for by what is not the name of one.
var ErrPage = errors.New("not the name of a page")

// Page returns a part of the list, from the beginning for an empty name, and the name of the next one,
// which is empty behind the last. A page may be empty.
func (l *List) Page(ctx context.Context, name string) (entries []Entry, next string, err error) {
	if l.o.Redis != nil {
		return l.sharedPage(ctx, name)
	}
	if name != "" && !strings.Contains(name, " ") { // of a field
		return nil, "", ErrPage
	}
	var damaged error
	err = l.o.Table.EachFrom(ctx, name, func(field string, value []byte) bool {
		if len(entries) == PageSize {
			next = field
			return false
		}
		var e Entry
		e, damaged = parse(field, string(value))
		entries = append(entries, e)
		return damaged == nil
	})
	if err = errors.Join(err, damaged); err != nil {
		return nil, "", throttle.Unavailable("reading the suppression list", err)
	}
	return entries, next, nil
}
