package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mailgate/mailgate/clock"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

func testMailCommand() command {
	return command{
		name: "test-mail", arguments: "<email>",
		summary: "send one mail through the relay, to see that the settings are right",
		teaches: `
Makes a mail as serve would, with a code that opens nothing, hands it to the relay of
MAILGATE_SMTP_URL and prints what the relay said. No server has to run, and the mail
does not count against the mailbox.`,
		run: testMail,
	}
}

func testMail(ctx context.Context, c call) error {
	s, rest, err := c.settings("<email>")
	if err != nil {
		return err
	}
	if err := s.ForSending(); err != nil {
		return err
	}
	to, err := address.Parse(rest[0], address.Identity{})
	if err != nil {
		return misusage("the recipient will not do: " + err.Error())
	}
	message, err := composeTest(s, to)
	if err != nil {
		return err
	}
	receipt, err := sendOne(ctx, s, message)
	if err != nil {
		return err
	}
	relay := receipt.Relay
	if receipt.OAuth {
		relay += " with OAuth"
	}
	_, err = fmt.Fprintf(c.stdout, "accepted by %s: %d %s %s\n", relay, receipt.Reply.Code, receipt.Reply.Enhanced, receipt.Reply.Message)
	return err
}

func composeTest(s *settings.Settings, to address.Address) (message.Message, error) {
	composer, err := newComposer(s)
	if err != nil {
		return message.Message{}, err
	}
	code, err := verify.NewCode(rand.Reader)
	if err != nil {
		return message.Message{}, err
	}
	return composer.Compose(message.Request{
		To: to, Code: code, ExpiresInMS: s.CodeLife.Milliseconds(),
		ID: throttle.NewID().String(), NowMS: clock.Now(),
	})
}

// sendOne hands one mail over and takes leave of the relay.
func sendOne(ctx context.Context, s *settings.Settings, message message.Message) (relay.Receipt, error) {
	relays, err := newRelays(s, slog.New(slog.DiscardHandler), relay.Hooks{})
	if err != nil {
		return relay.Receipt{}, err
	}
	receipt, err := handOver(ctx, relays, message)
	var failed *relay.Error
	if errors.As(err, &failed) && failed.Reply != nil && failed.Reply.Message != "" {
		err = fmt.Errorf("%w: %s", err, failed.Reply.Message)
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leave)
	defer cancel()
	return receipt, errors.Join(err, relays.Close(within))
}

func handOver(ctx context.Context, relays *relay.Relays, m message.Message) (relay.Receipt, error) {
	tx, err := relays.Begin(ctx, m.From, m.To)
	if err != nil {
		return relay.Receipt{}, err
	}
	return tx.Commit(ctx, m.Bytes)
}
