package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mailgate/mailgate/clock"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

type testMailCommand struct {
	Email string `arg:"" help:"Where to send it."`
}

func (testMailCommand) Help() string {
	return `Composes an email as serve would, with a code that is not valid, hands it to the relay of MAILGATE_SMTP_URL and prints the reply. It needs no running server and is not counted.`
}

func (command testMailCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	if err := c.ForSending(); err != nil {
		return err
	}
	recipient, err := mailer.ParseAddress(command.Email, mailer.Identity{})
	if err != nil {
		return &config.Error{Problem: "invalid recipient: " + err.Error()}
	}
	message, err := composeTest(c, recipient)
	if err != nil {
		return err
	}
	receipt, err := sendOne(ctx, c, message)
	if err != nil {
		return err
	}
	relay := receipt.Relay
	if receipt.OAuth {
		relay += " with OAuth"
	}
	_, err = fmt.Fprintf(to.out, "accepted by %s: %d %s %s\n", relay, receipt.Reply.Code, receipt.Reply.Enhanced, receipt.Reply.Message)
	return err
}

func composeTest(c *config.Config, to mailer.Address) (mailer.Message, error) {
	composer, err := newComposer(c)
	if err != nil {
		return mailer.Message{}, err
	}
	code, err := verify.NewCode(rand.Reader)
	if err != nil {
		return mailer.Message{}, err
	}
	return composer.Compose(mailer.Request{
		To: to, Code: code, ExpiresInMS: c.CodeLife.Milliseconds(),
		ID: throttle.NewID().String(), NowMS: clock.Now(),
	})
}

// sendOne hands over one email and closes the connection.
func sendOne(ctx context.Context, c *config.Config, message mailer.Message) (mailer.Receipt, error) {
	relays, err := newRelays(c, slog.New(slog.DiscardHandler), mailer.Hooks{})
	if err != nil {
		return mailer.Receipt{}, err
	}
	receipt, err := relays.Send(ctx, message)
	if failed, ok := errors.AsType[*mailer.SendError](err); ok && failed.Reply != nil && failed.Reply.Message != "" {
		err = fmt.Errorf("%w: %s", err, failed.Reply.Message)
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), quitTimeout)
	defer cancel()
	return receipt, errors.Join(err, relays.Close(within))
}
