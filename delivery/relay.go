package delivery

import (
	"context"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
)

// Relay opens transactions; [FromRelays] makes one. After an error of Begin the email
// certainly never left, or was rejected. An error of Commit that package relay does not know
// counts as an email that may have left.
type Relay interface {
	Begin(ctx context.Context, from, to address.Address) (Transaction, error)
}

// Transaction is an email that a relay is ready for; *relay.Tx is one.
type Transaction interface {
	Commit(text []byte) (relay.Receipt, error)
	Abort()
}

// FromRelays returns the Relay that hands emails to relays.
func FromRelays(relays *relay.Relays) Relay { return smtp{relays} }

type smtp struct{ relays *relay.Relays }

func (s smtp) Begin(ctx context.Context, from, to address.Address) (Transaction, error) {
	tx, err := s.relays.Begin(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return tx, nil
}
