package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
)

const (
	relayConns = 8     // to the relay, kept
	relayMails = 4_000 // a round
)

// oursComposing is ours with each mail made as it is sent.
const oursComposing = "mailgate, composing"

// relays compares handing mails to a relay over eight connections, into one relay after
// the other.
func relays() ([]row, error) {
	rows, err := relayInto(sandboxName, withSandbox)
	if err != nil {
		return nil, err
	}
	if _, err := postfixTool(sinkName); err != nil {
		return append(rows, notMeasured(relayWhat(sinkName), err.Error())), nil
	}
	more, err := relayInto(sinkName, withSink)
	return append(rows, more...), err
}

func relayWhat(sink string) string {
	return fmt.Sprintf("a mail into %s, %d connections", sink, relayConns)
}

// relayInto lets all sides send to one relay. The Pool composes each mail as it sends
// it and cannot do otherwise; the row of ours that composes too is beside it.
func relayInto(sink string, with func(func(addr string) error) error) (rows []row, err error) {
	letters, err := composeAll(relayMails)
	if err != nil {
		return nil, err
	}
	err = with(func(addr string) error {
		return withSenders(addr, letters, func(sides []side) error {
			read, err := interleave(9, sides...)
			if err != nil {
				return err
			}
			what := relayWhat(sink)
			rows = append(rows,
				read.compare(what, onTheClock, ours, poolName, 1),
				read.compare(what+", composed", onTheClock, oursComposing, poolName, 1),
				read.compare(what, onTheClock, ours, netSMTPName, 1))
			if _, measured := read[sourceName]; measured {
				rows = append(rows, read.compare(what, onTheClock, ours, sourceName, 0))
			} else {
				_, err := postfixTool(sourceName)
				rows = append(rows, notMeasured(what+", beside "+sourceName, err.Error()))
			}
			return nil
		})
	})
	return rows, err
}

// A letter is one mail: what it is made of, and made.
type letter struct {
	request message.Request
	message message.Message
}

// composeAll makes so many mails.
func composeAll(n int) ([]letter, error) {
	composer, err := newComposer()
	if err != nil {
		return nil, err
	}
	all := make([]letter, n)
	for i := range all {
		to, err := address.Parse(mailbox("user", i), address.Identity{})
		if err != nil {
			return nil, err
		}
		all[i].request = message.Request{
			To: to, Code: fmt.Sprintf("%06d", i), ExpiresInMS: 600_000, ID: throttle.NewID().String(), NowMS: residentClock,
		}
		if all[i].message, err = composer.Compose(all[i].request); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// newComposer is the composer of the program's defaults.
func newComposer() (*message.Composer, error) {
	templates, err := message.LoadTemplates(nil, "en")
	if err != nil {
		return nil, err
	}
	from, err := message.ParseSender("Acme <no-reply@acme.example>")
	if err != nil {
		return nil, err
	}
	return message.NewComposer(from, templates)
}

// withSenders opens all sides on one relay.
func withSenders(addr string, letters []letter, use func([]side) error) error {
	return withDir(func(dir string) error {
		return withRelays(addr, func(relays *relay.Relays) error {
			composer, err := newComposer()
			if err != nil {
				return err
			}
			sides := []side{
				{ours, mails(letters, func(l *letter) error { return send(relays, l.message) })},
				{oursComposing, mails(letters, func(l *letter) error {
					message, err := composer.Compose(l.request)
					if err != nil {
						return err
					}
					return send(relays, message)
				})},
			}
			if source, err := newSource(dir, letters[0].message); err == nil {
				sides = append(sides, side{sourceName, func() (cost, error) { return source.round(addr, relayConns, relayMails) }})
			}
			return withPeers(addr, letters, func(peers []side) error { return use(append(sides, peers...)) })
		})
	})
}

// mails is a round that sends every letter.
func mails(letters []letter, send func(*letter) error) func() (cost, error) {
	return func() (cost, error) {
		wall, err := spread(relayConns, len(letters), func(i int) error { return send(&letters[i]) })
		return cost{wall: wall}, err
	}
}

func withRelays(addr string, use func(*relay.Relays) error) error {
	url, err := relay.ParseURL("smtp://" + addr + "?tls=none")
	if err != nil {
		return err
	}
	relays, err := relay.New([]relay.URL{url}, relay.Options{MaxConns: relayConns, MaxConnsPerDomain: relayConns})
	if err != nil {
		return err
	}
	return errors.Join(use(relays), relays.Close(context.Background()))
}

func send(relays *relay.Relays, m message.Message) error {
	tx, err := relays.Begin(context.Background(), m.From, m.To)
	if err != nil {
		return err
	}
	_, err = tx.Commit(context.Background(), m.Bytes)
	return err
}
