package gate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/netip"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle"
)

// KeyOf returns the limiter's key for what Options.Key returned, for calls such as Reset. It begins
// with its kind, so that no caller can pass for an address, and is a hash, so that it has a bounded
// length and memory of its own: Fiber reuses its strings.
func KeyOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "key " + string(sum[:])
}

// KeyOfPeer returns the limiter's key for a connection's address.
func KeyOfPeer(address netip.Addr) string { return peerKey(network.Visitor(address)) }

func peerKey(address string) string { return "peer " + address }

// key returns what a request is counted by.
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

// partitions is the secret of the partition keys in the RateLimit headers.
type partitions [32]byte

func newPartitions() (p partitions) {
	_, _ = rand.Read(p[:]) // never fails
	return p
}

// setRateLimit sets the headers by the Set of a request in Fiber or net/http. Their pk is a short
// hash of the key.
func (p *partitions) setRateLimit(set func(name, value string), key string, v *throttle.Verdict) {
	mac := hmac.New(sha256.New, p[:])
	mac.Write([]byte(key))
	told := report.OfOne("", "", string(mac.Sum(nil)[:8]), v)
	told.Header(set)
}
