package api

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Shared is what other doors use of a Server, so that all have one delivery and are counted together.
type Shared struct {
	Delivery *delivery.Service
	Identity address.Identity  // whose addresses are logged as hashes
	Rules    func() *rules.Set // in force
	// WrongKey counts a wrong key by the address it came from, and reports whether there are too many.
	WrongKey func(from netip.Addr) bool
	// Count counts a send by what came of it; a denied one has the rule and the limit.
	Count func(door, outcome, rule, limit string)
	// Keep keeps for operators what a log line about a recipient says, and what is only for them.
	Keep func(attrs []slog.Attr)
	// Shadows logs and counts the shadow rules that would have refused an admitted send.
	Shadows func(door, requestID string, to address.Address, d rules.Decision)
}

// Shared returns what other doors use.
func (s *Server) Shared() Shared {
	return Shared{
		Delivery: s.delivery, Identity: s.with.Identity, Rules: func() *rules.Set { return s.live.Load().Rules }, Count: s.metrics.count, WrongKey: s.wrongKey,
		Shadows: s.noteShadows, Keep: s.keepEntry,
	}
}

// AlsoDrain has Shutdown end another door at the same time as its own.
func (s *Server) AlsoDrain(drain func(context.Context) error) { s.others = append(s.others, drain) }
