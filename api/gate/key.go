package gate

import (
	"crypto/sha256"
	"net"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/network"
	"github.com/mailgate/mailgate/throttle"
)

// What is counted begins with what it is, so that nobody can take a name that is
// another's address.
const (
	byUser = "user "
	byKey  = "key "
	byPeer = "peer "
)

// key is who is counted, in memory of its own: what Fiber hands out is written over by
// the next request.
func (g *gate) key(c *fiber.Ctx) (key string, known bool) {
	if g.User != nil {
		if name, ok := g.User(c); ok {
			return fit(byUser, name), true
		}
	}
	if g.NeedUser {
		return "", false
	}
	if g.Key != nil {
		if name := g.Key(c); name != "" {
			return fit(byKey, name), true
		}
	}
	return byPeer + peer(c), true
}

// fit puts a hash in place of what is too long for a key. Its length tells it apart
// from what it could be mistaken for.
func fit(kind, name string) string {
	if len(kind)+len(name) <= throttle.MaxKey {
		return kind + name
	}
	sum := sha256.Sum256([]byte(name))
	return "long " + kind + string(sum[:])
}

func peer(c *fiber.Ctx) string {
	if tcp, ok := c.Context().RemoteAddr().(*net.TCPAddr); ok {
		return network.Visitor(tcp.AddrPort().Addr())
	}
	return c.Context().RemoteAddr().String() // one host, or none at all
}
