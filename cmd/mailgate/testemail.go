package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
)

type testEmailCommand struct {
	Email string `arg:"" help:"Where to send it."`
}

func (testEmailCommand) Help() string {
	return `Composes an email as serve would, with a code that is not valid, hands it to the relay of MAILGATE_SMTP_URL and prints the reply. It needs no running node and is not counted.`
}

func (command testEmailCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	if err := c.ForSending(); err != nil {
		return err
	}
	recipient, err := address.Parse(command.Email, address.Identity{})
	if err != nil {
		return &config.Error{Problem: "invalid recipient: " + err.Error()}
	}
	composer, err := newComposer(c)
	if err != nil {
		return err
	}
	mail, err := composer.Compose(message.Request{
		To: recipient, Code: verify.NewCode(), ExpiresInMS: c.CodeLife.Milliseconds(), ID: rand.Text(), NowMS: now(),
	})
	if err != nil {
		return err
	}
	relays, err := newRelays(c, slog.New(slog.DiscardHandler), relay.Metrics{})
	if err != nil {
		return err
	}
	tx, err := relays.Begin(ctx, relay.Envelope{From: mail.From, To: []address.Address{mail.To}})
	var receipt relay.Receipt
	if err == nil {
		receipt, err = tx.Commit(mail.Bytes)
	}
	quit, cancel := context.WithTimeout(context.WithoutCancel(ctx), quitTimeout)
	defer cancel()
	err = errors.Join(err, relays.Close(quit))
	if failed, ok := errors.AsType[*relay.Error](err); ok && failed.Reply != nil && failed.Reply.Message != "" {
		err = fmt.Errorf("%w: %s", err, failed.Reply.Message)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to.out, "accepted by %s: %d %s %s\n", receipt.Relay, receipt.Reply.Code, receipt.Reply.Enhanced, receipt.Reply.Message)
	return err
}
