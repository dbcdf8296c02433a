package relay_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
)

// mail is what the tests send.
type mail struct {
	From, To string
	Bytes    []byte
}

// send is one mail from Begin to Commit.
func send(ctx context.Context, relays *relay.Relays, m mail) (relay.Receipt, error) {
	from, err := address.Parse(m.From, address.Identity{})
	if err != nil {
		return relay.Receipt{}, err
	}
	to, err := address.Parse(m.To, address.Identity{})
	if err != nil {
		return relay.Receipt{}, err
	}
	tx, err := relays.Begin(ctx, from, to)
	if err != nil {
		return relay.Receipt{}, err
	}
	return tx.Commit(ctx, m.Bytes)
}

func parse(t testing.TB, text string) address.Address {
	t.Helper()
	parsed, err := address.Parse(text, address.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func isBusy(err error) bool {
	failure, ok := errors.AsType[*relay.Error](err)
	return ok && failure.Outcome == relay.Busy
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
