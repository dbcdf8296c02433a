package gate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/netip"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/throttle"
)

// KeyOf is the limiter's key of what Options.Key returns. It begins with its kind, so that no
// caller can pass for an address.
func KeyOf(name string) string {
	if key := "key " + name; throttle.CheckKey(key) == nil {
		return key
	}
	sum := sha256.Sum256([]byte(name)) // for what is too long
	return "long key " + string(sum[:])
}

// KeyOfPeer is the limiter's key of a connection's address.
func KeyOfPeer(address netip.Addr) string { return peerKey(network.Visitor(address)) }

func peerKey(address string) string { return "peer " + address }

// key is what a request is counted by, in memory of its own: Fiber reuses its strings.
func (g *gate) key(c *fiber.Ctx) string {
	if g.Key != nil {
		if name := g.Key(c); name != "" {
			return KeyOf(name)
		}
	}
	if tcp, ok := c.Context().RemoteAddr().(*net.TCPAddr); ok {
		return KeyOfPeer(tcp.AddrPort().Addr())
	}
	return peerKey(c.Context().RemoteAddr().String())
}

// partitions makes the partition keys of the RateLimit headers, by a secret.
type partitions [32]byte

func newPartitions() (p partitions) {
	_, _ = rand.Read(p[:]) // never fails
	return p
}

// of is a short hash of a key.
func (p *partitions) of(key string) string {
	mac := hmac.New(sha256.New, p[:])
	mac.Write([]byte(key))
	return string(mac.Sum(nil)[:8])
}
