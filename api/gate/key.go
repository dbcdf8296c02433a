package gate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/netip"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/report"
)

// KeyOf returns the limiter's key for what Options.Key returned, for calls such as Reset. It begins with its kind, so that
// no caller can pass for an address. It is a hash, so that its length is bounded and Fiber, which reuses its strings,
// cannot change it.
func KeyOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "key " + string(sum[:])
}

// KeyOfPeer returns the limiter's key for a connection's address.
func KeyOfPeer(address netip.Addr) string { return "peer " + network.Visitor(address) }

// partitions is the secret of the partition keys in the RateLimit headers, the same for all gates of a
// process: one caller has one key.
var partitions = []byte(rand.Text())

// show sets the RateLimit header fields. Their pk is a short hash of the key.
func (p *pass) show(set func(name, value string)) {
	mac := hmac.New(sha256.New, partitions)
	mac.Write([]byte(p.key))
	rep := report.OfOne("", "", string(mac.Sum(nil)[:8]), &p.Verdict)
	if policy, state := rep.Header(); len(policy) > 0 {
		set(report.RateLimitPolicy, string(policy))
		set(report.RateLimit, string(state))
	}
}
