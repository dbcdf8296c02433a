// Package keyedtest is the suite that every keyed.Store passes, and what tests of packages
// that are built on one need: its homes and a clock.
package keyedtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// Clock makes time pass for the users of a Store without waiting. Values still expire by the
// Store's own clock, so a user under test has to look at the expiry in its values.
type Clock struct{ ahead atomic.Int64 }

// Add moves the clock by so many milliseconds.
func (c *Clock) Add(ms int64) { c.ahead.Add(ms) }

// Now returns this clock, for what keeps time beside a Store in one process.
func (c *Clock) Now() int64 { return time.Now().UnixMilli() + c.ahead.Load() }

// moved is a Store by another clock than its own.
type moved struct {
	keyed.Store
	clock *Clock
}

func (m moved) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	return m.Store.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		return step(old, now+m.clock.ahead.Load())
	})
}

const hour = int64(time.Hour / time.Millisecond)

// Run runs the suite. Each open returns a Store, all of them over the same values, which are
// none at the start.
func Run(t *testing.T, open func() keyed.Store) {
	for name, test := range map[string]func(*testing.T, func() keyed.Store){
		"Values_AreSetAndRemoved":          values,
		"KeysAndValuesOfAnyBytes_AreApart": anyBytes,
		"EqualValue_KeepsItsExpiry":        equalValue,
		"ManyAtOnce_OneSeesNoValue":        oneWins,
		"Contention_EveryStepTaken":        contention,
		"CallerGone_Unavailable":           callerGone,
		"Clock_IsNow":                      clockIsNow,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// set replaces the value of a key and returns the one before.
func set(t *testing.T, s keyed.Store, key string, next []byte, life int64) (before []byte) {
	t.Helper()
	degraded, err := s.Update(t.Context(), key, func(old []byte, now int64) ([]byte, int64) {
		before = append([]byte(nil), old...)
		if old == nil {
			before = nil
		}
		return next, now + life
	})
	if err != nil || degraded {
		t.Fatalf("degraded %v, %v", degraded, err)
	}
	return before
}

// values sets and removes values, each under another Store, and expects the value before.
func values(t *testing.T, open func() keyed.Store) {
	for i, step := range []struct {
		next   string // none if empty
		life   int64
		before string
	}{{"a", hour, ""}, {"b", hour, "a"}, {"", hour, "b"}, {"c", hour, ""}, {"expired", 0, "c"}, {"", hour, ""}} {
		next := []byte(step.next)
		if step.next == "" {
			next = nil
		}
		if before := set(t, open(), "key", next, step.life); string(before) != step.before || (before == nil) != (step.before == "") {
			t.Errorf("step %d: the value before is %q, want %q", i, before, step.before)
		}
	}
}

func equalValue(t *testing.T, open func() keyed.Store) {
	s := open()
	const life = 300
	set(t, s, "equal", []byte("a"), life)
	set(t, s, "equal", []byte("a"), hour)
	servertest.Eventually(t, "the value to expire", func() (gone bool) {
		_, err := s.Update(t.Context(), "equal", func(old []byte, now int64) ([]byte, int64) {
			gone = old == nil
			return old, now + life
		})
		return err == nil && gone
	})
}

func anyBytes(t *testing.T, open func() keyed.Store) {
	s := open()
	var every []byte
	for i := range 256 {
		every = append(every, byte(i))
	}
	keys := []string{"a", "a}b", "{a}", "}", "a b", "a\r\nb", "\x00\xff", strings.Repeat("k", 1024)}
	for _, key := range keys {
		set(t, s, "any "+key, append([]byte(key), bytes.Repeat(every, 300)...), hour)
	}
	for _, key := range keys {
		if before := set(t, s, "any "+key, nil, 0); !bytes.Equal(before, append([]byte(key), bytes.Repeat(every, 300)...)) {
			t.Errorf("the value of %q came back otherwise, as %d bytes", key, len(before))
		}
	}
}

// atOnce calls do from many goroutines at the same moment, each with a Store of its own.
func atOnce(open func() keyed.Store, number int, do func(s keyed.Store)) {
	var done sync.WaitGroup
	start := make(chan struct{})
	for range number {
		s := open()
		done.Go(func() {
			<-start
			do(s)
		})
	}
	close(start)
	done.Wait()
}

func oneWins(t *testing.T, open func() keyed.Store) {
	for _, key := range []string{"won 1", "won 2", "won 3", "won 4", "won 5"} {
		var winners atomic.Int64
		atOnce(open, 64, func(s keyed.Store) {
			won := false
			_, err := s.Update(t.Context(), key, func(old []byte, now int64) ([]byte, int64) {
				if won = old == nil; won {
					return []byte("taken"), now + hour
				}
				return old, now + hour
			})
			if err != nil {
				t.Error(err)
			}
			if won {
				winners.Add(1)
			}
		})
		if n := winners.Load(); n != 1 {
			t.Fatalf("%d found no value, want 1", n)
		}
	}
}

func contention(t *testing.T, open func() keyed.Store) {
	const callers, each = 12, 20
	s := open()
	count := func(s keyed.Store, add uint64) (n uint64) {
		_, err := s.Update(t.Context(), "count", func(old []byte, now int64) ([]byte, int64) {
			if n = add; old != nil {
				n += binary.BigEndian.Uint64(old)
			}
			return binary.BigEndian.AppendUint64(nil, n), now + hour
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	atOnce(open, callers, func(s keyed.Store) {
		for range each {
			count(s, 1)
		}
	})
	if n := count(s, 0); n != callers*each {
		t.Errorf("%d steps were taken, want %d", n, callers*each)
	}
}

func callerGone(t *testing.T, open func() keyed.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := open().Update(ctx, "secret@example.com", func([]byte, int64) ([]byte, int64) { return []byte("a"), 1 << 60 })
	if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

func clockIsNow(t *testing.T, open func() keyed.Store) {
	s := open()
	read := func() (at int64) {
		if _, err := s.Update(t.Context(), "clock", func(_ []byte, now int64) ([]byte, int64) { at = now; return nil, 0 }); err != nil {
			t.Fatal(err)
		}
		return at
	}
	before := time.Now().UnixMilli()
	at := read()
	if after := time.Now().UnixMilli(); at < before || at > after {
		t.Errorf("the step was taken at %d, between %d and %d", at, before, after)
	}
}
