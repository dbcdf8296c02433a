package delivery

import (
	"context"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
)

// checkSuppressed refuses a recipient who is to get no email. A critical one reaches an address that bounced
// once a day, and a visitor who did not ask for the last one: another's mistake must not lock them out.
func (s *Service) checkSuppressed(ctx context.Context, c *charge) *Error {
	found, err := s.o.Suppressions.Find(c.Mail.To)
	if err != nil {
		return failure(err)
	}
	if len(found) == 0 {
		return nil
	}
	why, critical := found[0], c.critical()
	if critical && why.Reason == suppression.NotMe {
		return nil
	}
	if critical && why.Reason == suppression.HardBounce {
		c.passed = true // perhaps, after an error
		v, err := s.o.Passes.TakeID(ctx, why.Address, c.id)
		if err != nil {
			return failure(err)
		}
		if v.Allowed {
			return nil
		}
		c.passed = false
	}
	s.o.Metrics.Suppressed.WithLabelValues(string(why.Reason)).Inc()
	return &Error{Kind: Suppressed, Suppression: why}
}

// takeBack refunds the pass of an email to an address that bounced.
func (s *Service) takeBack(ctx context.Context, to address.Address, id throttle.ID) error {
	_, err := s.o.Passes.Release(ctx, suppression.HardBounce.Subject(to), throttle.Admission{ID: id})
	return err
}
