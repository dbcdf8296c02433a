package api

import (
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle"
)

// boundLookups admits as many requests of a caller as Options.RateLimits.Lookups does. A request without a
// key that opens the route is counted by its address, so that it uses up nothing of a caller's.
// Keys of the two kinds may have one name, and are counted apart.
func (s *Server) boundLookups(to access) step {
	kind := map[access]string{applications: "application ", operators: "operator "}[to]
	return s.bound("lookups", "this caller's lookups", s.with.RateLimits.Lookups, func(r *request) string {
		if r.keyOpens == to {
			r.Key = r.keyName
			return kind + r.keyName
		}
		return network.KeyOf(r.From)
	})
}

// bound makes the step of a limiter; nil is no limit. Its limits are in refusals only: the
// RateLimit headers of other answers are about a mailbox.
func (s *Server) bound(name, whose string, by *throttle.Limiter, key func(*request) string) step {
	return func(r *request) error {
		if by == nil {
			return nil
		}
		of := key(r)
		v, err := gate.Take(r.c.UserContext(), by, of)
		if err == nil && !v.Allowed {
			return denied(r.reports(report.OfOne(name, whose, s.names.subject(of), &v)))
		}
		return err
	}
}
