package throttle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What New did not make, and what was changed afterwards, answers nothing and charges nothing.
func TestLimiter_NotMadeByNew_RefusesEachCall(t *testing.T) {
	table := must.Get(cache.Open(cache.Options{}))(t).Table("sends")
	made := local.New(table, throttle.DefaultPolicy())
	changed := local.New(table, throttle.DefaultPolicy())
	changed.Algorithm = throttletest.Counters(t, "minute=3/60s")["fixed window"]
	ctx := context.Background()
	for name, l := range map[string]*throttle.Limiter{
		"zero":                   {},
		"a zero algorithm":       {Algorithm: throttle.Policy{}, Home: made.Home},
		"a literal":              {Algorithm: throttle.DefaultPolicy(), Home: made.Home},
		"without a home":         {Algorithm: throttle.DefaultPolicy()},
		"without an algorithm":   {Home: made.Home},
		"New without a home":     throttle.New(throttle.DefaultPolicy(), nil),
		"With, without a home":   throttle.New(throttle.DefaultPolicy(), nil).With(throttle.DefaultPolicy()),
		"another form afterward": changed,
	} {
		t.Run(name, func(t *testing.T) {
			v, took := l.Take(ctx, "alice")
			p, peeked := l.Peek(ctx, "alice")
			released, refunded := l.Release(ctx, "alice", throttle.Admission{ID: throttle.NewID()})
			_, reset := l.Reset(ctx, "alice")
			recorded := l.Record(ctx, "alice", throttle.Admission{ID: throttle.NewID(), At: 1})
			_, history := l.History(ctx, "alice")
			for _, err := range []error{took, peeked, refunded, reset, recorded, history} {
				if !errors.Is(err, throttle.ErrLimiter) {
					t.Errorf("the error is %v", err)
				}
			}
			if _, refused := l.Recall(ctx, "alice"); v.Allowed || p.Allowed || released || refused {
				t.Errorf("a take says %t, a peek %t, a release %t, a recall %t", v.Allowed, p.Allowed, released, refused)
			}
		})
	}
	if h := must.Get(made.History(ctx, "alice"))(t); len(h) != 0 {
		t.Errorf("charged were %v", h)
	}
}

// With keeps to the form of the records, whatever has become of the limiter, and a zero value has none.
func TestNewAndWith_NoForm_Panic(t *testing.T) {
	l := local.Memory(throttle.DefaultPolicy())
	for name, make := range map[string]func(){
		"a zero policy":      func() { throttle.New(throttle.Policy{}, l.Home) },
		"a zero window":      func() { throttle.New(throttle.FixedWindow{}, l.Home) },
		"a zero slide":       func() { throttle.New(throttle.SlidingWindow{}, l.Home) },
		"a zero bucket":      func() { throttle.New(throttle.TokenBucket{}, l.Home) },
		"a zero queue":       func() { throttle.New(throttle.LeakyBucket{}, l.Home) },
		"nil":                func() { l.With(nil) },
		"a zero value":       func() { l.With(throttle.Policy{}) },
		"another form":       func() { l.With(throttletest.Counters(t, "t=1/1s")["fixed window"]) },
		"of a zero limiter":  func() { new(throttle.Limiter).With(throttle.Policy{}) },
		"of a zero limiter ": func() { new(throttle.Limiter).With(throttle.DefaultPolicy()) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a limiter was made by %s", name)
				}
			}()
			make()
		}()
	}
}
