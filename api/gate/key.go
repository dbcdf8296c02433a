package gate

import (
	"crypto/sha256"
	"net"
	"net/netip"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/throttle"
)

// KeyOfUser is under which key the limiter counts whom Options.User calls by this name: to
// look at a caller, or to reset one.
//
// What is counted begins with what it is, so that no caller can take another's name
// address.
func KeyOfUser(name string) string { return fit("user ", name) }

// KeyOf is the limiter's key of whom Options.Key names so.
func KeyOf(name string) string { return fit("key ", name) }

// KeyOfPeer is the limiter's key of a caller who is counted by the connection's address.
func KeyOfPeer(address netip.Addr) string { return peerKey(network.Visitor(address)) }

func peerKey(address string) string { return "peer " + address }

// key is who is counted, in memory of its own: what Fiber hands out is written over by
// the next request.
func (g *gate) key(c *fiber.Ctx) (key string, known bool) {
	if g.User != nil {
		if name, ok := g.User(c); ok {
			return KeyOfUser(name), true
		}
	}
	if g.NeedUser {
		return "", false
	}
	if g.Key != nil {
		if name := g.Key(c); name != "" {
			return KeyOf(name), true
		}
	}
	return peer(c), true
}

// fit puts a hash in place of what is too long for a key. Its length tells it apart
// from what it could be mistaken for.
func fit(kind, name string) string {
	if throttle.CheckKey(kind+name) == nil {
		return kind + name
	}
	sum := sha256.Sum256([]byte(name))
	return "long " + kind + string(sum[:])
}

func peer(c *fiber.Ctx) string {
	if tcp, ok := c.Context().RemoteAddr().(*net.TCPAddr); ok {
		return KeyOfPeer(tcp.AddrPort().Addr())
	}
	return peerKey(c.Context().RemoteAddr().String()) // one host, or none at all
}
