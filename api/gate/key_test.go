package gate_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/throttle"
)

// Who is counted together, and who apart.
func TestWhoIsCounted(t *testing.T) {
	byHeader := func(name string) func(*fiber.Ctx) string {
		return func(c *fiber.Ctx) string { return c.Get(name) }
	}
	user := func(c *fiber.Ctx) (string, bool) { return c.Get("X-User"), c.Get("X-User") != "" }
	tests := []struct {
		name        string
		options     func(*gate.Options)
		first, then string // two by the first fill its limit
		status      int    // of one by then
	}{
		{"the peer, whatever a header says", nil, "X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 2.2.2.2", 429},
		{"a key", func(o *gate.Options) { o.Key = byHeader("X-Key") }, "X-Key: a", "X-Key: b", 200},
		{"one key", func(o *gate.Options) { o.Key = byHeader("X-Key") }, "X-Key: a", "X-Key: a", 429},
		{"no key is the peer", func(o *gate.Options) { o.Key = byHeader("X-Key") }, "X-Other: a", "X-Other: b", 429},
		{"a key is no peer", func(o *gate.Options) { o.Key = byHeader("X-Key") }, "X-Other: a", "X-Key: 127.0.0.1", 200},
		{"a user", func(o *gate.Options) { o.User = user }, "X-User: a", "X-User: b", 200},
		{"a user is no peer", func(o *gate.Options) { o.User = user }, "X-Other: a", "X-User: 127.0.0.1", 200},
		{"a user is no key", func(o *gate.Options) { o.User, o.Key = user, byHeader("X-Key") }, "X-Key: a", "X-User: a", 200},
		{"long keys", func(o *gate.Options) { o.Key = byHeader("X-Key") }, "X-Key: " + strings.Repeat("x", 2000) + "a", "X-Key: " + strings.Repeat("x", 2000) + "b", 200},
		{"one long key", func(o *gate.Options) { o.Key = byHeader("X-Key") }, "X-Key: " + strings.Repeat("x", 2000), "X-Key: " + strings.Repeat("x", 2000), 429},
		{"a kind and a long name", func(o *gate.Options) { o.User, o.Key = user, byHeader("X-Key") }, "X-Key: " + strings.Repeat("x", 2000), "X-User: " + strings.Repeat("x", 2000), 200},
		{"who is left out", func(o *gate.Options) { o.Skip = func(c *fiber.Ctx) bool { return c.Get("X-Key") == "probe" } }, "X-Key: a", "X-Key: probe", 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, tt.options, nil)
			s.ask(tt.first).is(t, 200)
			s.ask(tt.first).is(t, 200)
			s.ask(tt.then).is(t, tt.status)
		})
	}
}

// Keys are kept in memory of their own: what Fiber hands out is written over.
func TestKeysAreCopied(t *testing.T) {
	limiter := &remembering{}
	s := open(t, func(o *gate.Options) {
		limiter.Limiter, o.Limiter = o.Limiter, limiter
		o.Key = func(c *fiber.Ctx) string { return c.Get("X-Key") }
	}, nil)
	var want []string
	for i := range 50 {
		name := fmt.Sprintf("visitor-%02d", i)
		want = append(want, gate.KeyOf(name))
		s.ask("X-Key: "+name).is(t, 200)
	}
	if !slices.Equal(limiter.keys, want) {
		t.Errorf("the limiter was given %q", limiter.keys)
	}
}

// Whoever is counted can be found under the key that is told, and under no other.
func TestKeysAreTold(t *testing.T) {
	long, longest := strings.Repeat("x", 2000), strings.Repeat("x", 1024-len("key "))
	header := func(name string) func(*fiber.Ctx) string {
		return func(c *fiber.Ctx) string { return c.Get(name) }
	}
	user := func(c *fiber.Ctx) (string, bool) { return c.Get("X-User"), c.Get("X-User") != "" }
	for _, tt := range []struct{ request, key string }{
		{"X-User: bob", gate.KeyOfUser("bob")},
		{"X-User: bob", "user bob"},
		{"X-Key: " + longest, "key " + longest},
		{"X-Key: " + longest + "x", gate.KeyOf(longest + "x")},
		{"X-User: " + long, gate.KeyOfUser(long)},
		{"X-Key: tenant", gate.KeyOf("tenant")},
		{"X-Key: " + long, gate.KeyOf(long)},
		{"X-Other: any", gate.KeyOfPeer(netip.MustParseAddr("127.0.0.1"))},
		{"X-Other: any", gate.KeyOfPeer(netip.MustParseAddr("::ffff:127.0.0.1"))},
	} {
		s := open(t, func(o *gate.Options) { o.User, o.Key = user, header("X-Key") }, nil)
		s.ask(tt.request).is(t, 200)
		s.ask(tt.request).is(t, 200)
		s.ask(tt.request).is(t, 429)
		if n, err := s.limiter.Reset(context.Background(), tt.key); n != 2 || err != nil {
			t.Errorf("%.20s: the key has %d, %v", tt.request, n, err)
		}
		s.ask(tt.request).is(t, 200)
	}
}

type remembering struct {
	throttle.Limiter
	keys []string
}

func (r *remembering) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	r.keys = append(r.keys, key)
	return r.Limiter.Take(ctx, key, id)
}
