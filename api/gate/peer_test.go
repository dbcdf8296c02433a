package gate

import (
	"net"
	"net/netip"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Who is counted by where the connection comes from: one address of IPv4, however it is
// written, and all of one network of IPv6.
func TestPeer(t *testing.T) {
	for _, tt := range []struct {
		one, other string
		same       bool
	}{
		{"203.0.113.7", "203.0.113.7", true},
		{"203.0.113.7", "203.0.113.8", false},
		{"203.0.113.7", "::ffff:203.0.113.7", true},
		{"203.0.113.7", "::ffff:203.0.113.8", false},
		{"2001:db8::1", "2001:db8::2", true},
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"2001:db8::1", "203.0.113.7", false},
	} {
		one, other := countedAs(t, tt.one, 1025), countedAs(t, tt.other, 65535)
		if (one == other) != tt.same {
			t.Errorf("%s counts as %q, %s as %q", tt.one, one, tt.other, other)
		}
	}
}

// countedAs is the key of a request from an address, where nothing is said about keys.
func countedAs(t *testing.T, address string, port uint16) string {
	t.Helper()
	app, ctx := fiber.New(), new(fasthttp.RequestCtx)
	ctx.Init(new(fasthttp.Request), net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), port)), nil)
	c := app.AcquireCtx(ctx)
	defer app.ReleaseCtx(c)
	key, known := new(gate).key(c)
	if !known {
		t.Fatalf("%s is not counted", address)
	}
	return key
}
