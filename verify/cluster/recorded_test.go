package cluster_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/cluster"
	"github.com/mailgate/mailgate/verify/verifytest"
)

func record(t testing.TB, book verify.SharedBook, mailbox string, made verify.Kept) {
	t.Helper()
	if err := book.Record(context.Background(), mailbox, made); err != nil {
		t.Fatal(err)
	}
}

// A code that is recorded again is what it became after the first time, and nothing else is
// changed.
func TestRecordedAgain(t *testing.T) {
	t.Parallel()
	now := clocktest.New(1_800_000_000_000)
	book := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Timeout: patient, Clock: now.Now})
	ctx := context.Background()
	made := verify.Kept{Hash: verify.Hash{1}, Expires: now.Now() + minute}
	for name, c := range map[string]struct {
		became func(mailbox string)
		then   verify.Result
	}{
		"right":   {func(string) {}, verify.Correct},
		"used":    {func(mailbox string) { expect(t, book, mailbox, made.Hash, verify.Correct) }, verify.Incorrect},
		"reset":   {func(mailbox string) { _ = book.Forget(ctx, mailbox) }, verify.Incorrect},
		"removed": {func(mailbox string) { _ = book.Remove(ctx, mailbox, made.Hash) }, verify.Incorrect},
		"used after one expired": {func(mailbox string) {
			add(t, book, mailbox, verify.Hash{3}, 1)
			now.Add(1)
			expect(t, book, mailbox, verify.Hash{2}, verify.Incorrect)
			expect(t, book, mailbox, made.Hash, verify.Correct)
			now.Add(-1)
		}, verify.Incorrect},
		"pushed out": {func(mailbox string) {
			for n := range verify.MaxCodes {
				add(t, book, mailbox, verify.Hash{2, byte(n)}, 2*minute)
			}
		}, verify.Incorrect},
	} {
		record(t, book, name, made)
		c.became(name)
		now.Add(minute - 1)
		record(t, book, name, verify.Kept{Hash: verify.Hash{9}, Expires: now.Now() + minute})
		record(t, book, name, made)
		if got, err := book.Check(ctx, name, made.Hash); got != c.then || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		now.Add(1 - minute)
	}
	expect(t, book, "reset", verify.Hash{9}, verify.Correct)
	other := made
	other.Expires++
	record(t, book, "used", other) // a code of its own, of the same digits
	expect(t, book, "used", made.Hash, verify.Correct)
}

// A code that is recorded is right until it expires, also where that is in more than a day.
func TestRecordedUntil(t *testing.T) {
	t.Parallel()
	now := clocktest.New(1_800_000_000_000)
	book := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Timeout: patient, Clock: now.Now})
	made := verify.Kept{Hash: verify.Hash{1}, Expires: now.Now() + minute}
	record(t, book, "until", made)
	now.Add(minute - 1)
	expect(t, book, "until", verify.Hash{2}, verify.Incorrect)
	now.Add(1)
	expect(t, book, "until", made.Hash, verify.Expired)
	record(t, book, "until", made)
	expect(t, book, "until", made.Hash, verify.Expired)
	record(t, book, "until", verify.Kept{Hash: verify.Hash{3}, Expires: now.Now() + verify.MaxLifetime + minute})
	expect(t, book, "until", verify.Hash{3}, verify.Correct)
}

// Of codes that are forgotten until a moment those are right that expire later; and none is
// made right by being recorded again.
func TestForgottenUntil(t *testing.T) {
	t.Parallel()
	now := clocktest.New(1_800_000_000_000)
	book := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Timeout: patient, Clock: now.Now})
	made := verify.Kept{Hash: verify.Hash{1}, Expires: now.Now() + minute}
	for name, c := range map[string]struct {
		until       int64
		made, later verify.Result
	}{
		"before": {made.Expires - 1, verify.Correct, verify.Expired},
		"then":   {made.Expires, verify.Incorrect, verify.Correct},
		"all":    {made.Expires + 1, verify.Expired, verify.Expired},
	} {
		record(t, book, name, made)
		add(t, book, name, verify.Hash{2}, minute+1)
		for range 2 {
			if err := book.ForgetUntil(context.Background(), name, c.until); err != nil {
				t.Fatal(err)
			}
		}
		record(t, book, name, made)
		expect(t, book, name, made.Hash, c.made)
		expect(t, book, name, verify.Hash{2}, c.later)
	}
}

// What is kept of codes that were recorded has a bound, and an end: that of the code.
func TestMarksAreFew(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	now := clocktest.New(1_800_000_000_000)
	book := open(t, redisstore.Options{URL: server.URL(), Timeout: patient, Clock: now.Now})
	ctx := context.Background()
	last := verify.Kept{Hash: verify.Hash{1, 100}, Expires: now.Now() + minute}
	for n := range 3 * verify.MaxCodes {
		record(t, book, "few", verify.Kept{Hash: verify.Hash{1, byte(n)}, Expires: now.Now() + minute})
	}
	record(t, book, "few", last)
	const place = 22
	if got := server.Client().StrLen(ctx, prefix+"few").Val(); got != place*(1+2*verify.MaxCodes) {
		t.Errorf("%d bytes", got)
	}
	expect(t, book, "few", last.Hash, verify.Correct)
	record(t, book, "few", last)
	expect(t, book, "few", last.Hash, verify.Expired)
	add(t, book, "few", verify.Hash{200}, minute) // as a number it is of a time to come
	now.Add(minute)
	add(t, book, "few", verify.Hash{2}, minute)
	if got := server.Client().StrLen(ctx, prefix+"few").Val(); got != place*2 {
		t.Errorf("afterwards %d bytes", got)
	}
}

// The record of a code that was recorded stays as long as the code would have, and goes by
// itself.
func TestMarksByTheServersClock(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	book := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	made := verify.Kept{Hash: verify.Hash{1}, Expires: time.Now().UnixMilli() + 10*minute}
	record(t, book, "used", made)
	for _, step := range []func(){
		func() { expect(t, book, "used", made.Hash, verify.Correct) },
		func() { record(t, book, "used", made) },
	} {
		step()
		if at := server.Client().PExpireTime(context.Background(), prefix+"used").Val().Milliseconds(); at < made.Expires || at > made.Expires+2000 {
			t.Errorf("the key goes %d ms after the code", at-made.Expires)
		}
	}
}

// A marked book has marks of two codes in the record of each mailbox.
type marked struct {
	*cluster.Book
	t    testing.TB
	now  func() int64
	seen sync.Map
}

func (b *marked) Add(ctx context.Context, mailbox string, h verify.Hash, lifetime int64) error {
	if _, again := b.seen.LoadOrStore(mailbox, true); !again && throttle.CheckKey(mailbox) == nil {
		for n := range int64(2) {
			made := verify.Kept{Hash: verify.Hash{255, byte(n)}, Expires: b.now() + verify.MaxLifetime - n}
			if err := errors.Join(b.Record(ctx, mailbox, made), b.Remove(ctx, mailbox, made.Hash)); err != nil && ctx.Err() == nil {
				b.t.Error(err)
			}
		}
	}
	return b.Book.Add(ctx, mailbox, h, lifetime)
}

// Marks change nothing about codes that are not recorded.
func TestConformsWithMarks(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	verifytest.Run(t, func(t testing.TB, now func() int64) verify.Book {
		return &marked{Book: open(t, redisstore.Options{URL: server.URL(), Timeout: patient, Clock: now}), t: t, now: now}
	}, 2_000)
}
