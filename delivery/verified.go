package delivery

import (
	"context"
	"log/slog"

	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Verify checks what was typed as the code that was emailed to an address for a purpose, and uses
// it up if it is right. What the rules charged until then is returned.
func (s *Service) Verify(ctx context.Context, set *rules.Set, to address.Address, purpose, typed string) (verify.Outcome, error) {
	o, err := s.o.Codes.Verify(ctx, recipient(to, purpose), typed)
	s.verified(set, to, o.Notes)
	if o.Result == verify.Correct && err == nil {
		s.past.add(s.o.Now(), rules.Send{Mailbox: to.Key()}, true)
	}
	return o, err
}

// Report is told by a caller that a code of its own was right, and returns what its sends to the mailbox were charged
// until then.
func (s *Service) Report(ctx context.Context, set *rules.Set, to address.Address, caller string) error {
	notes, err := s.o.Codes.Report(ctx, to.Key(), caller)
	s.verified(set, to, notes)
	if err == nil {
		s.past.add(s.o.Now(), rules.Send{Mailbox: to.Key(), Caller: caller}, true)
	}
	return err
}

// verified returns the charges in notes, in the background if that fails now. The right code is counted once, even if
// that fails: counted twice it would widen a limit.
func (s *Service) verified(set *rules.Set, to address.Address, notes []verify.Note) {
	var owed []rules.Charge
	for _, n := range notes {
		owed = append(owed, set.Returned(n.Text)...)
	}
	if len(owed) == 0 {
		return
	}
	counted := false
	r := &refund{id: owed[0].Admission.ID, whose: slog.String("mailbox", to.Hash())}
	r.release = func(ctx context.Context) (err error) {
		if !counted {
			counted = true
			if err := set.Verified(ctx, owed); err != nil {
				s.o.Log.Warn("a right code could not be counted", r.whose, "id", r.id.String(), "cause", err.Error())
			}
		}
		owed, err = s.release(ctx, r, set, owed)
		return err
	}
	s.refunds.now(r)
}
