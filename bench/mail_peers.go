package main

import (
	"context"
	"errors"
	"fmt"
	"net/smtp"
	"net/textproto"

	"github.com/jordan-wright/email"

	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

const (
	poolName    = "email.Pool"
	netSMTPName = "net/smtp, same octets"
)

// withPeers opens the peers' connections to one relay.
func withPeers(addr string, letters []letter, use func([]side) error) error {
	emails, err := emailsOf(letters)
	if err != nil {
		return err
	}
	pool, err := email.NewPool(addr, relayConns, nil)
	if err != nil {
		return err
	}
	clients, err := dialSMTP(addr)
	if err != nil {
		return err
	}
	err = use([]side{
		{poolName, func() (cost, error) {
			wall, err := spread(relayConns, len(emails), func(i int) error { return pool.Send(emails[i], patience) })
			return cost{wall: wall}, err
		}},
		{netSMTPName, mails(letters, clients.send)},
	})
	pool.Close()
	return errors.Join(err, clients.close())
}

// emailsOf says what the letters say, in the peer's terms. What can be done ahead of
// the sending is done here.
func emailsOf(letters []letter) ([]*email.Email, error) {
	seen, err := asRead(letters[0].message)
	if err != nil {
		return nil, err
	}
	all := make([]*email.Email, len(letters))
	for i, l := range letters {
		all[i] = &email.Email{
			From: seen.Header.Get("From"), To: []string{l.message.To.String()}, Subject: seen.Subject,
			Text: []byte(seen.Text), HTML: []byte(seen.HTML),
			Headers: textproto.MIMEHeader{
				"Message-Id":     {l.message.ID},
				"Date":           {seen.Header.Get("Date")},
				"Auto-Submitted": {seen.Header.Get("Auto-Submitted")},
			},
		}
	}
	return all, alike(all[0], letters[0].message)
}

// asRead is a mail as its reader sees it: what the peer composes from.
func asRead(m message.Message) (sandbox.Message, error) {
	box, err := sandbox.Start(sandbox.Options{})
	if err != nil {
		return sandbox.Message{}, err
	}
	defer box.Close()
	if err := withRelays(box.Addr(), func(r *relay.Relays) error { return send(r, m) }); err != nil {
		return sandbox.Message{}, err
	}
	return box.Wait(context.Background(), m.To.String())
}

// alike makes sure that the peer's mail is about as long as ours.
func alike(theirs *email.Email, ours message.Message) error {
	octets, err := theirs.Bytes()
	if err != nil {
		return err
	}
	if ratio := float64(len(octets)) / float64(len(ours.Bytes)); ratio < 0.8 || ratio > 1.2 {
		return fmt.Errorf("the peer's mail has %d octets and ours %d", len(octets), len(ours.Bytes))
	}
	return nil
}

// smtpClients are kept connections of the standard library's client: the conversation
// that the Pool has, without its composing.
type smtpClients chan *smtp.Client

func dialSMTP(addr string) (smtpClients, error) {
	all := make(smtpClients, relayConns)
	for range relayConns {
		client, err := smtp.Dial(addr)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all <- client
	}
	return all, nil
}

func (s smtpClients) send(l *letter) error {
	client := <-s
	defer func() { s <- client }()
	if err := client.Mail(l.message.From.String()); err != nil {
		return err
	}
	if err := client.Rcpt(l.message.To.String()); err != nil {
		return err
	}
	data, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write(l.message.Bytes); err != nil {
		return err
	}
	return data.Close()
}

func (s smtpClients) close() (err error) {
	close(s)
	for client := range s {
		err = errors.Join(err, client.Quit())
	}
	return err
}
