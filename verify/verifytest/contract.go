package verifytest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

func nothingOnRecord(t *testing.T, open Open) {
	p, _ := begin(t, open)
	p.expect(1, verify.Expired)
	p.expect(1, verify.Expired)
}

func rightOnce(t *testing.T, open Open) {
	p, _ := begin(t, open)
	p.add(1, minute)
	for range 3 {
		p.expect(2, verify.Incorrect) // and changes nothing
	}
	p.expect(1, verify.Correct)
	p.expect(1, verify.Expired)
	p.add(1, minute)
	p.expect(1, verify.Correct)
}

func everyCodeIsRight(t *testing.T, open Open) {
	for brought := range verify.MaxCodes {
		p, clock := begin(t, open)
		for n := range verify.MaxCodes {
			p.add(n, minute)
			clock.Add(1)
		}
		p.expect(verify.MaxCodes, verify.Incorrect)
		p.expect(brought, verify.Correct)
		for n := range verify.MaxCodes {
			p.expect(n, verify.Expired)
		}
	}
}

func edgesOfALife(t *testing.T, open Open) {
	for _, lifetime := range []int64{1, 2, 999, 1000, verify.DefaultLifetime, verify.MaxLifetime} {
		p, clock := begin(t, open)
		p.add(1, lifetime)
		clock.Set(start + lifetime - 1)
		p.expect(2, verify.Incorrect)
		p.expect(1, verify.Correct)

		clock.Set(start)
		p.add(1, lifetime)
		clock.Set(start + lifetime)
		p.expect(1, verify.Expired)
	}
	// Two codes expire each at its moment.
	p, clock := begin(t, open)
	p.add(1, 1000)
	p.add(2, 2000)
	clock.Set(start + 1000)
	p.expect(1, verify.Incorrect)
	clock.Set(start + 1999)
	p.expect(1, verify.Incorrect)
	p.expect(2, verify.Correct)
}

func addedAgain(t *testing.T, open Open) {
	p, clock := begin(t, open)
	p.add(1, 2000)
	p.add(1, 1000) // the later moment stays
	clock.Set(start + 1999)
	p.expect(2, verify.Incorrect)
	p.add(1, 2000)
	clock.Set(start + 1999 + 1999)
	p.expect(1, verify.Correct)

	// It is one code, and no other has to make room for it.
	p, _ = begin(t, open)
	for n := range verify.MaxCodes {
		p.add(n, minute+int64(n))
	}
	for range 3 {
		p.add(verify.MaxCodes-1, 2*minute)
	}
	p.expect(0, verify.Correct)
}

func theSoonestMakesRoom(t *testing.T, open Open) {
	full := func() patron {
		p, _ := begin(t, open)
		for n := range verify.MaxCodes { // the later it was added the sooner it expires
			p.add(n, 2*minute-int64(n))
		}
		p.add(100, minute) // sooner than them all, and yet the one that was just mailed
		return p
	}
	full().expect(verify.MaxCodes-1, verify.Incorrect)
	full().expect(verify.MaxCodes-2, verify.Correct)
	full().expect(0, verify.Correct)
	full().expect(100, verify.Correct)

	// Of those that expire at once, the lower hash.
	p, _ := begin(t, open)
	for n := verify.MaxCodes; n > 0; n-- {
		p.add(n, minute)
	}
	p.add(100, minute)
	p.expect(1, verify.Incorrect)
	p.expect(2, verify.Correct)

	// What has expired leaves its room.
	p, clock := begin(t, open)
	p.add(1, 1000)
	for n := range verify.MaxCodes - 1 {
		p.add(10+n, minute)
	}
	clock.Add(1000)
	p.add(100, minute)
	p.expect(10, verify.Correct)
}

func mailboxesAreApart(t *testing.T, open Open) {
	p, _ := begin(t, open)
	other := p
	other.mailbox = newMailbox()
	for _, strange := range []string{" " + p.mailbox, p.mailbox + "\x00", strings.ToUpper(p.mailbox), p.mailbox + "}{", "\xff" + p.mailbox} {
		q := p
		q.mailbox = strange
		q.add(3, minute)
		q.expect(1, verify.Incorrect)
	}
	p.add(1, minute)
	other.add(2, minute)
	p.expect(2, verify.Incorrect)
	other.expect(1, verify.Incorrect)
	p.expect(1, verify.Correct)
	other.expect(2, verify.Correct)
}

func forget(t *testing.T, open Open) {
	p, _ := begin(t, open)
	p.forget() // nothing there is no error
	p.add(1, minute)
	p.add(2, minute)
	p.forget()
	p.expect(1, verify.Expired)
	p.expect(2, verify.Expired)
	p.add(3, minute)
	p.expect(1, verify.Incorrect)
	p.expect(3, verify.Correct)
}

func remove(t *testing.T, open Open) {
	p, clock := begin(t, open)
	p.remove(1) // nothing there is no error
	p.add(1, minute)
	p.add(2, 1000)
	p.add(3, minute)
	p.remove(4)
	p.remove(1)
	p.remove(1)
	p.expect(1, verify.Incorrect)
	clock.Add(1000)
	p.remove(4) // nor does it bring back what has expired
	clock.Set(start)
	p.expect(2, verify.Incorrect)
	p.expect(3, verify.Correct)

	p.add(1, minute)
	p.remove(1) // the last one
	p.expect(1, verify.Expired)
	p.add(1, minute)
	p.expect(1, verify.Correct)
}

// What was refused as expired stays so. A code that outlives it is not touched.
func clockStepsBack(t *testing.T, open Open) {
	p, clock := begin(t, open)
	p.add(1, 1000)
	clock.Add(1000)
	p.expect(1, verify.Expired)
	clock.Set(start)
	p.expect(1, verify.Expired)

	p, clock = begin(t, open)
	p.add(1, 1000)
	p.add(2, 2000)
	clock.Add(1000)
	p.expect(1, verify.Incorrect)
	clock.Set(start)
	p.expect(1, verify.Incorrect)
	p.expect(2, verify.Correct)
	p.expect(2, verify.Expired)

	// A new code brings none back, nor does it suffer from one far in the future.
	p, clock = begin(t, open)
	p.add(1, 1000)
	clock.Add(1000)
	p.add(2, 1000)
	clock.Set(start - 5000)
	p.add(3, 1000)
	p.expect(1, verify.Incorrect)
	p.expect(3, verify.Correct)
}

func badArguments(t *testing.T, open Open) {
	p, _ := begin(t, open)
	ctx := context.Background()
	for _, mailbox := range []string{"", strings.Repeat("a", throttle.MaxKey+1)} {
		if err := p.book.Add(ctx, mailbox, code(1), minute); !errors.Is(err, throttle.ErrKey) {
			t.Errorf("add for a mailbox of %d bytes: %v", len(mailbox), err)
		}
		if result, err := p.book.Check(ctx, mailbox, code(1)); !errors.Is(err, throttle.ErrKey) || result == verify.Correct {
			t.Errorf("check for a mailbox of %d bytes: %v, %v", len(mailbox), result, err)
		}
		if err := p.book.Remove(ctx, mailbox, code(1)); !errors.Is(err, throttle.ErrKey) {
			t.Errorf("remove for a mailbox of %d bytes: %v", len(mailbox), err)
		}
		if err := p.book.Forget(ctx, mailbox); !errors.Is(err, throttle.ErrKey) {
			t.Errorf("forget a mailbox of %d bytes: %v", len(mailbox), err)
		}
	}
	for _, lifetime := range []int64{0, -1, verify.MaxLifetime + 1} {
		if err := p.book.Add(ctx, p.mailbox, code(1), lifetime); !errors.Is(err, verify.ErrLifetime) {
			t.Errorf("add for %d ms: %v", lifetime, err)
		}
	}
	p.expect(1, verify.Expired)

	long := p
	long.mailbox += strings.Repeat("a", throttle.MaxKey-len(p.mailbox))
	long.add(1, minute)
	long.expect(1, verify.Correct)
}

func endedContext(t *testing.T, open Open) {
	p, _ := begin(t, open)
	p.add(1, minute)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result, checked := p.book.Check(ctx, p.mailbox, code(1))
	if result == verify.Correct {
		t.Error("a check that nobody waits for was answered")
	}
	for call, err := range map[string]error{
		"check":  checked,
		"add":    p.book.Add(ctx, p.mailbox, code(2), minute),
		"remove": p.book.Remove(ctx, p.mailbox, code(1)),
		"forget": p.book.Forget(ctx, p.mailbox),
	} {
		if !errors.Is(err, verify.ErrUnavailable) || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), p.mailbox) {
			t.Errorf("%s: %v", call, err)
		}
	}
	p.expect(1, verify.Correct)
}
