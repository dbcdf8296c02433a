package suppression

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
)

var (
	//go:embed write.lua
	writeSource string
	//go:embed read.lua
	readSource string

	writeScript = redisx.NewScript(writeSource, func(reply any) bool {
		numbers, _ := reply.([]any)
		return len(numbers) != 2 || numbers[1] != int64(0)
	})
	readScript = redisx.NewScript(readSource, nil)
)

// write writes entries in Redis for an event, and returns the number of the last change and how many there were: -1 if
// the event was known. Of entries that were written without Redis it writes those that Redis lacks.
func (l *List) write(ctx context.Context, withoutRedis bool, event Event, entries ...Entry) (position, written int64, err error) {
	var args []any
	for _, e := range entries {
		since := int64(0)
		if withoutRedis {
			since = int64(e.Since)
		}
		args = append(args, field(e.Address, e.Reason), string(e.value()), int64(e.Until), since, event.Name, event.Life)
	}
	answer, err := writeScript.Run(ctx, l.o.Redis, l.key, args...)
	if err != nil {
		return 0, 0, err
	}
	reply, _ := answer.([]any)
	if len(reply) != 2 {
		return 0, 0, redisx.ErrReply
	}
	position, numbered := reply[0].(int64)
	written, counted := reply[1].(int64)
	if !numbered || !counted {
		return 0, 0, redisx.ErrReply
	}
	return position, written, nil
}

// bring adds to Redis what was written without it. Once Redis has them, these entries are in the copy like all others.
func (l *List) bring(ctx context.Context) error {
	for next := ""; l.unshared; {
		var entries []Entry
		from := next
		next = ""
		err := l.o.Table.EachFrom(ctx, from, func(field string, value []byte) bool {
			if len(entries) == PageSize {
				next = field
				return false
			}
			if e, damaged := parse(field, string(value)); damaged == nil && value[0] == unshared {
				entries = append(entries, e)
			}
			return true
		})
		if err != nil {
			return err
		}
		_, written, err := l.write(ctx, true, Event{}, entries...)
		if err == nil {
			err = l.copy(ctx, entries)
		}
		if err != nil {
			return fmt.Errorf("bringing this node's own entries to Redis: %w", err)
		}
		l.brought += written
		if l.unshared = next != ""; !l.unshared {
			l.o.Log.Info("the suppression list that this node kept without Redis is in Redis now", "added", l.brought)
		}
	}
	return nil
}

// changes are those after a position.
type changes struct {
	newest  int64 // of all that there are
	last    int64 // of these
	entries []Entry
}

func (l *List) changesAfter(ctx context.Context, position int64) (c changes, err error) {
	answer, err := readScript.Run(ctx, l.o.Redis, l.key, position, PageSize)
	if err != nil {
		return c, err
	}
	reply, _ := answer.([]any)
	words := make([]string, len(reply))
	for i := range reply {
		words[i], _ = reply[i].(string)
	}
	if len(words) < 2 || len(words)%2 != 0 {
		return c, redisx.ErrReply
	}
	c.newest, err = strconv.ParseInt(words[0], 10, 64)
	last, bad := strconv.ParseInt(words[1], 10, 64)
	if err = errors.Join(err, bad); err != nil {
		return c, redisx.ErrReply
	}
	c.last = last
	for i := 2; i < len(words); i += 2 {
		e, err := parse(words[i], words[i+1])
		if err != nil {
			return c, err
		}
		c.entries = append(c.entries, e)
	}
	return c, nil
}

func (l *List) sharedPage(ctx context.Context, name string) (entries []Entry, next string, err error) {
	position := int64(0)
	if name != "" {
		if position, err = strconv.ParseInt(name, 10, 64); err != nil {
			return nil, "", ErrPage
		}
	}
	c, err := l.changesAfter(ctx, position)
	if err != nil {
		return nil, "", throttle.Unavailable("reading the suppression list", err)
	}
	now := l.o.Now()
	for _, e := range c.entries {
		if e.end() > now {
			entries = append(entries, e)
		}
	}
	if len(c.entries) == PageSize {
		next = strconv.FormatInt(c.last, 10)
	}
	return entries, next, nil
}

// memory is for how long Redis certainly has what was removed.
const memory = 12 * time.Hour

// sync reads what has changed in Redis. What fails is read again the next time.
func (l *List) sync(ctx context.Context) {
	whole := l.synced.IsZero() || time.Since(l.synced) > memory
	err := l.bring(ctx)
	if err == nil {
		err = l.read(ctx, whole)
	}
	if errors.Is(err, errLost) {
		err = l.read(ctx, true)
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		l.synced = time.Now()
		l.readAt.Store(l.o.Now())
		l.loaded.Store(true)
		if l.failed {
			l.o.Log.Info("the suppression list follows the changes of other nodes again")
		}
		l.failed = false
	case !l.failed:
		l.failed = true
		l.o.Log.Warn("the suppression list cannot follow the changes of other nodes", "cause", err)
	}
}

// errLost means that Redis has forgotten changes that it had.
var errLost = errors.New("Redis has lost changes")

// read takes the changes into the index and the copy. The whole list is read into a new index, as what is
// not in Redis is to be forgotten.
func (l *List) read(ctx context.Context, whole bool) error {
	into := l.current.Load()
	if whole {
		into = newIndex()
		l.loading.Store(into)
		defer l.loading.Store(nil)
	}
	for {
		position, newest := into.state()
		c, err := l.changesAfter(ctx, position)
		if err == nil && c.newest < newest {
			err = errLost
		}
		if err != nil {
			return err
		}
		now := l.o.Now()
		for _, e := range c.entries {
			into.apply(e, now, c.last)
		}
		news := c.entries
		if l.opening { // most of a long list is in the copy: to look for each there takes 50 s for a million
			news = slices.DeleteFunc(slices.Clone(news), func(e Entry) bool { return l.current.Load().has(e) })
		}
		if err := l.copy(ctx, news); err != nil {
			return fmt.Errorf("keeping this node's copy: %w", err)
		}
		into.moveTo(c.last)
		if len(c.entries) == PageSize {
			continue
		}
		if whole {
			l.current.Store(into)
			return l.forget(ctx, into)
		}
		return nil
	}
}

// copy writes entries into this node's copy.
func (l *List) copy(ctx context.Context, entries []Entry) error {
	if l.o.Table == nil {
		return nil
	}
	ctx, durable := cache.Batch(ctx)
	for _, e := range entries {
		if err := l.o.Table.Update(ctx, field(e.Address, e.Reason), func([]byte, int64) ([]byte, int64) { return e.value(), e.end() }); err != nil {
			return err
		}
	}
	return durable(ctx)
}

// forget removes from the copy what is not in an index that has all of Redis.
func (l *List) forget(ctx context.Context, in *index) error {
	if l.o.Table == nil {
		return nil
	}
	var gone []Entry
	err := l.o.Table.Each(ctx, func(field string, value []byte) bool {
		if e, err := parse(field, string(value)); err != nil || !in.has(e) {
			e.Until = ended
			gone = append(gone, e)
		}
		return true
	})
	return errors.Join(err, l.copy(ctx, gone))
}
