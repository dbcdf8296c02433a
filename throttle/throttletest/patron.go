package throttletest

import (
	"context"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// start is an ordinary moment for the clock of a test.
const start = int64(1_800_000_000_000)

// A patron is one mailbox at one limiter, for tests that do not expect errors.
type patron struct {
	t       testing.TB
	limiter throttle.Limiter
	mailbox string
}

// newMailbox is a mailbox that no other test has used, in any run on the same store.
func newMailbox(of string) string {
	return fmt.Sprintf("%s-%s%s@example.com", of, throttle.NewID(), throttle.NewID())
}

func (p patron) take(id throttle.ID) throttle.Verdict {
	p.t.Helper()
	v, err := p.limiter.Take(context.Background(), p.mailbox, id)
	if err != nil {
		p.t.Fatalf("take: %v", err)
	}
	return v
}

// admit takes with a new id and insists on a yes.
func (p patron) admit() throttle.ID {
	p.t.Helper()
	id := throttle.NewID()
	if v := p.take(id); !v.Allowed {
		p.t.Fatalf("take: not allowed, %s waits %d ms", v.Limit, v.Wait)
	}
	return id
}

func (p patron) peek() throttle.Verdict {
	p.t.Helper()
	v, err := p.limiter.Peek(context.Background(), p.mailbox)
	if err != nil {
		p.t.Fatalf("peek: %v", err)
	}
	return v
}

func (p patron) release(id throttle.ID) bool {
	p.t.Helper()
	released, err := p.limiter.Release(context.Background(), p.mailbox, id)
	if err != nil {
		p.t.Fatalf("release: %v", err)
	}
	return released
}

func (p patron) reset() int {
	p.t.Helper()
	cleared, err := p.limiter.Reset(context.Background(), p.mailbox)
	if err != nil {
		p.t.Fatalf("reset: %v", err)
	}
	return cleared
}

func (p patron) history() throttle.History {
	p.t.Helper()
	h, err := p.limiter.(throttle.Historian).History(context.Background(), p.mailbox)
	if err != nil {
		p.t.Fatalf("history: %v", err)
	}
	return h
}

// expect compares a whole verdict with its text.
func expect(t testing.TB, v throttle.Verdict, want string) {
	t.Helper()
	if got := spell(v); got != want {
		t.Fatalf("verdict\n got %s\nwant %s", got, want)
	}
}

// spell writes a verdict as "yes minute 60000 [minute 0 60000] [hour 4 0]".
func spell(v throttle.Verdict) string { return spellOut(v.Allowed, v.Limit, v.Wait, v.Tiers()) }

func spellOut(allowed bool, limit string, wait int64, tiers []throttle.Standing) string {
	text := "no"
	if allowed {
		text = "yes"
	}
	text += fmt.Sprintf(" %s %d", limit, wait)
	for _, tier := range tiers {
		text += fmt.Sprintf(" [%s %d %d]", tier.Name, tier.Remaining, tier.Wait)
	}
	return text
}

// Policy is what throttle.ParsePolicy makes of a text, which must be right.
func Policy(t testing.TB, text string) throttle.Policy {
	t.Helper()
	p, err := throttle.ParsePolicy(text)
	if err != nil {
		t.Fatalf("policy %s: %v", text, err)
	}
	return p
}
