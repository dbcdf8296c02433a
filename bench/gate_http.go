package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// gateHTTP compares a denied POST /send-code with a Fiber handler that reads the same
// body and answers in the same fields, but knows no key, checks nothing, decides
// nothing, logs nothing and counts nothing. All servers are in this process, the
// callers in another.
func gateHTTP() (rows []row, err error) {
	const connections, requests, mailboxes = 64, 20_000, 1_000
	err = withLoad(func(l load) error {
		return withDenying(mailboxes, func(server string) error {
			return withBare(func(bare map[string]string) error {
				turn := func(addr string) func() (cost, error) {
					return func() (cost, error) {
						return l.round(order{Addr: addr, Connections: connections, Requests: requests,
							From: "user", Mailboxes: mailboxes, Status: 429})
					}
				}
				read, err := interleave(9,
					side{ours, turn(server)},
					side{bareMap, turn(bare[bareMap])},
					side{bareStruct, turn(bare[bareStruct])},
					side{bareText, turn(bare[bareText])},
				)
				if err != nil {
					return err
				}
				what := fmt.Sprintf("a denied POST /send-code, %d connections", connections)
				rows = append(rows,
					// At least 3/4 of its requests a second.
					read.compare(what, onTheClock, ours, bareMap, 1.33),
					read.compare(what, onTheClock, ours, bareStruct, 0),
					read.compare(what, onTheClock, ours, bareText, 0))
				return nil
			})
		})
	})
	return rows, err
}

// withDenying serves our API, put together as the program does it, with so many
// mailboxes that may not be sent anything for most of an hour.
func withDenying(mailboxes int, use func(addr string) error) error {
	clock := func() int64 { return time.Now().UnixMilli() }
	back := int64(0)
	limiter, closeLimiter, err := openLocal(cache.Memory, local.Options{
		Policy: throttle.DefaultPolicy(), Now: func() int64 { return clock() - back },
	})
	if err != nil {
		return err
	}
	// Five sends, the last of them now: the hour is full.
	for back = 4 * 61_000; back >= 0; back -= 61_000 {
		_, err := spread(fillers, mailboxes, func(i int) error { return admitted(limiter, mailbox("user", i)) })
		if err != nil {
			return errors.Join(err, closeLimiter())
		}
	}
	back = 0
	return errors.Join(withServer(limiter, use), closeLimiter())
}

func withServer(limiter throttle.Historian, use func(addr string) error) error {
	options, err := apiOptions(limiter)
	if err != nil {
		return err
	}
	server, err := api.New(options)
	if err != nil {
		return err
	}
	return serving(server.Serve, server.Shutdown, use)
}

// serving runs a server on a free port for as long as use runs.
func serving(serve func(net.Listener) error, stop func(context.Context) error, use func(addr string) error) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- serve(listener) }()
	err = use(listener.Addr().String())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(err, stop(ctx), <-served)
}

// apiOptions are those that the program takes by default. The log is made, line by
// line, and thrown away.
func apiOptions(limiter throttle.Historian) (o api.Options, err error) {
	if o.Live.Composer, err = newComposer(); err != nil {
		return o, err
	}
	o.Live.Rules, err = rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: limiter})
	if err != nil {
		return o, err
	}
	if o.Identity, err = address.NewIdentity(true); err != nil {
		return o, err
	}
	if o.APIKeys, err = api.ParseKeys("app:" + apiKey); err != nil {
		return o, err
	}
	if o.AdminKeys, err = api.ParseKeys("ops:ops-" + apiKey); err != nil {
		return o, err
	}
	o.Sender = nobody{}
	o.Log = slog.New(slog.NewJSONHandler(io.Discard, nil))
	return o, nil
}

// nobody is the relay of those who may not send.
type nobody struct{}

var errSent = errors.New("a mail was sent that should have been denied")

func (nobody) Begin(context.Context, address.Address, address.Address) (api.Transaction, error) {
	return nil, errSent
}
