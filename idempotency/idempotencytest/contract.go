package idempotencytest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/idempotency"
)

func onceAndAgain(t *testing.T, open Open) {
	p, clock := begin(t, open)
	lease := p.started(1)
	p.inFlight(1, 60_000)
	clock.Add(15_000)
	p.inFlight(1, 45_000)
	p.finish(lease, answer(1), true)
	for range 3 {
		p.replay(1, answer(1))
		clock.Add(3_600_000)
	}
}

func byteForByte(t *testing.T, open Open) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	fields := []idempotency.Field{{Name: "Link", Value: "<b>"}, {Name: "link", Value: ""}, {Name: "Link", Value: "<a>, \"ü\"\t"}}
	for name, a := range map[string]idempotency.Answer{
		"nothing but a status": {Status: 204},
		"every byte":           {Status: 422, Body: every},
		"fields in order":      {Status: 200, Header: fields, Body: []byte("{}")},
		"a body like a field":  {Status: 599, Body: []byte("\x04Link\x03<b>")},
		"as long as may be":    {Status: 200, Body: bytes.Repeat([]byte("0123456789abcdef"), (idempotency.MaxAnswer-16)/16)},
	} {
		t.Run(name, func(t *testing.T) {
			p, clock := begin(t, open)
			p.finish(p.started(1), a, true)
			clock.Add(1)
			p.replay(1, a)
		})
	}
}

func anotherBody(t *testing.T, open Open) {
	p, clock := begin(t, open)
	lease := p.started(1)
	p.mismatch(2)
	p.inFlight(1, p.terms.Lease)
	p.finish(lease, answer(1), true)
	p.mismatch(2)
	p.replay(1, answer(1))
	// What has ended binds nobody.
	clock.Add(p.terms.Keep)
	p.started(2)
	clock.Add(p.terms.Lease)
	p.started(3)
}

func edgesOfALease(t *testing.T, open Open) {
	for _, length := range []int64{1, 2, 60_000} {
		clock := clocktest.New(start)
		terms := idempotency.Terms{Lease: length, Keep: 5}
		p := patron{t: t, keeper: open(t, terms, clock.Now), name: newName(), terms: terms}
		first := p.started(1)
		clock.Set(start + length - 1)
		p.inFlight(1, 1)
		clock.Set(start + length)
		second := p.started(1)
		if second.Token == first.Token {
			t.Fatal("two leases have one token")
		}
		p.inFlight(1, length)
	}
}

func edgesOfALife(t *testing.T, open Open) {
	p, clock := begin(t, open)
	lease := p.started(1)
	clock.Add(10_000)
	p.finish(lease, answer(1), true) // the life begins here
	clock.Set(start + 10_000 + p.terms.Keep - 1)
	p.replay(1, answer(1))
	clock.Add(1)
	p.started(1)
}

// Who finishes after the lease has ended is still heard, unless somebody else has begun.
func lateFinish(t *testing.T, open Open) {
	late := func(t *testing.T) (p patron, clock *clocktest.Clock, first idempotency.Lease) {
		p, clock = begin(t, open)
		first = p.started(1)
		clock.Add(p.terms.Lease)
		return p, clock, first
	}
	t.Run("nobody has begun", func(t *testing.T) {
		p, _, first := late(t)
		p.finish(first, answer(1), true)
		p.replay(1, answer(1))
	})
	t.Run("another is at it", func(t *testing.T) {
		p, _, first := late(t)
		second := p.started(1)
		p.finish(first, answer(1), false)
		p.inFlight(1, p.terms.Lease)
		p.finish(second, answer(2), true)
		p.replay(1, answer(2))
	})
	t.Run("another is at another request", func(t *testing.T) {
		p, _, first := late(t)
		second := p.started(2)
		p.finish(first, answer(1), false)
		p.mismatch(1)
		p.finish(second, answer(2), true)
		p.replay(2, answer(2))
	})
	t.Run("another has finished", func(t *testing.T) {
		p, _, first := late(t)
		p.finish(p.started(1), answer(2), true)
		p.finish(first, answer(1), false)
		p.replay(1, answer(2))
	})
	t.Run("another has abandoned", func(t *testing.T) {
		p, _, first := late(t)
		p.abandon(p.started(1), true)
		p.finish(first, answer(1), true)
		p.replay(1, answer(1))
	})
	t.Run("another is late too", func(t *testing.T) {
		p, clock, first := late(t)
		second := p.started(1)
		clock.Add(p.terms.Lease)
		p.finish(first, answer(1), true)
		p.finish(second, answer(2), false)
		p.replay(1, answer(1))
	})
}

func firstAnswerStays(t *testing.T, open Open) {
	p, clock := begin(t, open)
	lease := p.started(1)
	p.finish(lease, answer(1), true)
	clock.Add(1000)
	p.finish(lease, answer(2), true) // repeated, as after an answer that was lost
	p.replay(1, answer(1))
	clock.Set(start + p.terms.Keep - 1)
	p.replay(1, answer(1))
	clock.Add(1)
	p.started(1)
}

// Who did not hear that a lease has begun begins as it once more, and nobody else does.
func beginAs(t *testing.T, open Open) {
	p, clock := begin(t, open)
	as := func(lease idempotency.Lease, want idempotency.State) {
		t.Helper()
		o, err := p.keeper.BeginAs(context.Background(), lease)
		if err != nil || o.State != want || want == idempotency.Started && o.Lease != lease {
			t.Fatalf("begin as: %v, %v; want %v", o.State, err, want)
		}
	}
	lease := idempotency.Lease{Name: p.name, Body: body(1), Token: idempotency.NewToken()}
	other, unlike := lease, lease
	other.Token, unlike.Body = idempotency.NewToken(), body(2)
	as(lease, idempotency.Started)
	clock.Add(1000)
	as(lease, idempotency.Started)
	as(other, idempotency.InFlight)
	as(unlike, idempotency.Mismatch)
	p.inFlight(1, p.terms.Lease-1000) // it lasts no longer for that
	clock.Add(p.terms.Lease - 1000)
	as(other, idempotency.Started)
	as(lease, idempotency.InFlight)
	p.finish(other, answer(1), true)
	as(other, idempotency.Replay)

	p.name = newName()
	given := p.started(1)
	as(given, idempotency.Started)
	p.abandon(given, true)
	as(given, idempotency.Started)
}

func abandon(t *testing.T, open Open) {
	p, clock := begin(t, open)
	lease := p.started(1)
	p.abandon(lease, true)
	p.abandon(lease, false)
	second := p.started(2)
	p.abandon(lease, false) // not its own any more
	p.inFlight(2, p.terms.Lease)
	p.finish(second, answer(2), true)
	p.abandon(second, false)
	p.replay(2, answer(2))

	p.name = newName()
	lease = p.started(1)
	clock.Add(p.terms.Lease)
	p.abandon(lease, false) // there is nothing left to free
	second = p.started(1)
	p.abandon(lease, false)
	p.inFlight(1, p.terms.Lease)
	p.abandon(second, true)
	p.started(1)
}

func namesAreApart(t *testing.T, open Open) {
	p, _ := begin(t, open)
	unlike := p.name.Caller
	names := []idempotency.Name{
		{Caller: "", Key: unlike},
		{Caller: unlike, Key: "1"},
		{Caller: unlike + "1", Key: "1"},
		{Caller: unlike, Key: "11"},
		{Caller: unlike + ":", Key: "1"},
		{Caller: unlike, Key: ":1"},
		{Caller: strings.ToLower(unlike), Key: "1"},
		{Caller: unlike, Key: "a"},
		{Caller: unlike, Key: "A"},
		{Caller: "1:" + unlike, Key: "1"},
		{Caller: unlike + "\x00", Key: "1"},
		{Caller: unlike + "}", Key: "{1"},
		{Caller: unlike + strings.Repeat("c", idempotency.MaxCaller-len(unlike)), Key: strings.Repeat("k", idempotency.MaxKey)},
		{Caller: unlike + strings.Repeat("c", idempotency.MaxCaller-len(unlike)), Key: strings.Repeat("k", idempotency.MaxKey-1)},
	}
	for n, name := range names {
		p.name = name
		p.finish(p.started(n), answer(n), true)
	}
	for n, name := range names {
		p.name = name
		p.replay(n, answer(n))
	}
}

// What somebody does with an answer afterwards changes nothing that is on record.
func answersAreCopies(t *testing.T, open Open) {
	p, _ := begin(t, open)
	lease := p.started(1)
	given := answer(1)
	p.finish(lease, given, true)
	given.Body[0], given.Header[0].Value = '!', "changed"
	p.replay(1, answer(1))
	again := p.ask(1).Answer
	again.Body[0], again.Header[0].Value = '!', "changed"
	p.replay(1, answer(1))
}

// A clock that steps back makes records last longer, and nothing else.
func clockStepsBack(t *testing.T, open Open) {
	p, clock := begin(t, open)
	lease := p.started(1)
	clock.Add(-5000)
	p.inFlight(1, p.terms.Lease+5000)
	p.finish(lease, answer(1), true)
	clock.Add(-5000)
	p.replay(1, answer(1))
	clock.Set(start - 5000 + p.terms.Keep - 1)
	p.replay(1, answer(1))
	clock.Add(1)
	p.started(1)
}

func badArguments(t *testing.T, open Open) {
	p, _ := begin(t, open)
	ctx := context.Background()
	lease := p.started(1)
	for _, tt := range []struct {
		name idempotency.Name
		want error
	}{
		{idempotency.Name{Caller: "a"}, idempotency.ErrKey},
		{idempotency.Name{Caller: "a", Key: "a b"}, idempotency.ErrKey},
		{idempotency.Name{Caller: "a", Key: "ü"}, idempotency.ErrKey},
		{idempotency.Name{Caller: "a", Key: strings.Repeat("k", idempotency.MaxKey+1)}, idempotency.ErrKey},
		{idempotency.Name{Caller: strings.Repeat("c", idempotency.MaxCaller+1), Key: "k"}, idempotency.ErrCaller},
	} {
		if o, err := p.keeper.Begin(ctx, tt.name, body(1)); !errors.Is(err, tt.want) || o.State == idempotency.Started {
			t.Errorf("begin %q: %v, %v", tt.name, o.State, err)
		}
		bad := idempotency.Lease{Name: tt.name, Token: lease.Token}
		if o, err := p.keeper.BeginAs(ctx, bad); !errors.Is(err, tt.want) || o.State == idempotency.Started {
			t.Errorf("begin as %q: %v, %v", tt.name, o.State, err)
		}
		if kept, err := p.keeper.Finish(ctx, bad, answer(1)); kept || !errors.Is(err, tt.want) {
			t.Errorf("finish %q: %t, %v", tt.name, kept, err)
		}
		if freed, err := p.keeper.Abandon(ctx, bad); freed || !errors.Is(err, tt.want) {
			t.Errorf("abandon %q: %t, %v", tt.name, freed, err)
		}
	}
	none := lease
	none.Token = idempotency.Token{}
	if o, err := p.keeper.BeginAs(ctx, none); o.State == idempotency.Started || !errors.Is(err, idempotency.ErrLease) {
		t.Errorf("begin without a token: %v, %v", o.State, err)
	}
	if kept, err := p.keeper.Finish(ctx, none, answer(1)); kept || !errors.Is(err, idempotency.ErrLease) {
		t.Errorf("finish without a token: %t, %v", kept, err)
	}
	if freed, err := p.keeper.Abandon(ctx, none); freed || !errors.Is(err, idempotency.ErrLease) {
		t.Errorf("abandon without a token: %t, %v", freed, err)
	}
	long := idempotency.Answer{Status: 200, Body: make([]byte, idempotency.MaxAnswer)}
	for _, a := range []idempotency.Answer{{}, {Status: 199}, {Status: 600}, long} {
		if kept, err := p.keeper.Finish(ctx, lease, a); kept || !errors.Is(err, idempotency.ErrAnswer) {
			t.Errorf("finish with status %d and %d bytes: %t, %v", a.Status, len(a.Body), kept, err)
		}
	}
	p.inFlight(1, p.terms.Lease) // none of this has done anything
}

func endedContext(t *testing.T, open Open) {
	p, _ := begin(t, open)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o, begun := p.keeper.Begin(ctx, p.name, body(1))
	if o.State == idempotency.Started {
		t.Error("a request was started that nobody waits for")
	}
	if o.Lease.Name != p.name || o.Lease.Body != body(1) || o.Lease.Token.IsZero() {
		t.Errorf("what may have begun cannot be taken back: %v", o.Lease)
	}
	as := idempotency.Lease{Name: p.name, Body: body(1), Token: idempotency.NewToken()}
	if o, err := p.keeper.BeginAs(ctx, as); o.State == idempotency.Started || o.Lease != as || !errors.Is(err, idempotency.ErrUnavailable) {
		t.Errorf("begin as: %v under %v, %v", o.State, o.Lease, err)
	}
	p.abandon(o.Lease, false) // nothing has begun
	lease := p.started(1)
	kept, finished := p.keeper.Finish(ctx, lease, answer(1))
	freed, abandoned := p.keeper.Abandon(ctx, lease)
	if kept || freed {
		t.Errorf("kept %t, freed %t", kept, freed)
	}
	for call, err := range map[string]error{"begin": begun, "finish": finished, "abandon": abandoned} {
		if !errors.Is(err, idempotency.ErrUnavailable) || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), p.name.Caller) {
			t.Errorf("%s: %v", call, err)
		}
	}
	p.inFlight(1, p.terms.Lease)
}
