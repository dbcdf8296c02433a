package api

import (
	"context"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
)

// Sender opens transactions with a relay; [FromRelays] makes one. Errors are those of
// relay.Relays. Any other error of Commit counts as a mail that may have left.
type Sender interface {
	Begin(ctx context.Context, from, to address.Address) (Transaction, error)
}

// Transaction is a mail that a relay is ready for; *relay.Tx is one.
type Transaction interface {
	Commit(ctx context.Context, text []byte) (relay.Receipt, error)
	Abort()
}

// FromRelays is the Sender that hands mails to relays.
func FromRelays(relays *relay.Relays) Sender { return relaySender{relays} }

type relaySender struct{ relays *relay.Relays }

func (s relaySender) Begin(ctx context.Context, from, to address.Address) (Transaction, error) {
	tx, err := s.relays.Begin(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return tx, nil
}
