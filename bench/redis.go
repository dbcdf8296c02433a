package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
)

const (
	callers  = 256             // at once
	patience = 5 * time.Second // for one answer; nothing here should come near it
	batch    = 20_480          // decisions a round
	full     = 1_000           // mailboxes whose tiers are all full
)

const (
	ratesName = "redis_rate"
	plainName = "plain script"
	floorName = "empty script"
)

// A field is one server with ours and all peers on it.
type field struct {
	server *redisServer
	ours   *inRedis
	rates  rates
	plain  *piped
	floor  *piped
}

func withField(use func(*field) error) error {
	return withRedis(func(s *redisServer) error {
		limiter, err := openCluster(s.addr, throttle.DefaultPolicy(), nil)
		if err != nil {
			return err
		}
		plain, err := newPlain(s.addr)
		if err != nil {
			return errors.Join(err, limiter.Close())
		}
		floor, err := newFloor(s.addr)
		if err != nil {
			return errors.Join(err, plain.close(), limiter.Close())
		}
		f := &field{server: s, ours: limiter, rates: newRates(s.addr), plain: plain, floor: floor}
		return errors.Join(use(f), limiter.Close(), plain.close(), floor.close(), f.rates.client.Close())
	})
}

// inRedis is our limiter, with connections of its own.
type inRedis struct {
	*cluster.Limiter
	meters *cluster.Meters
	store  *redisstore.Store
}

// Close ends the connections.
func (l *inRedis) Close() error { return l.store.Close() }

// openCluster opens our limiter with its scripts loaded. A clock of nil is Redis's.
func openCluster(addr string, p throttle.Policy, clock func() int64) (*inRedis, error) {
	store, err := redisstore.Open(redisstore.Options{URL: "redis://" + addr, Timeout: patience, Clock: clock})
	if err != nil {
		return nil, err
	}
	limiter, err := cluster.New(store, p)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	meters, err := cluster.NewMeters(store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if _, err := store.Prepare(context.Background()); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &inRedis{limiter, meters, store}, nil
}

// redisDenial compares a no for mailboxes that are asked again after their first send.
func redisDenial() ([]row, error) { return denials("a denial, 1 send on record", 1) }

// redisFullDenial compares a no for mailboxes with ten sends on record and all tiers
// full. It is the plain script's best case, which stops at its first tier.
func redisFullDenial() ([]row, error) { return denials("a denial, 10 sends on record", 10) }

func denials(what string, sends int64) (rows []row, err error) {
	err = withField(func(f *field) error {
		all := mailboxes(full)
		if err := f.fill(all, sends); err != nil {
			return err
		}
		ask := func(p peer, want bool) func() (float64, error) {
			return func() (float64, error) {
				return spread(callers, batch, func(i int) error { return insist(p, all[i%full], want) })
			}
		}
		rows, err = f.compare(what, ask)
		return err
	})
	return rows, err
}

// redisAdmission compares the admission of a new mailbox.
func redisAdmission() (rows []row, err error) {
	err = withField(func(f *field) error {
		fresh := 0
		ask := func(p peer, _ bool) func() (float64, error) {
			return func() (float64, error) {
				first := fresh
				fresh += batch
				return spread(callers, batch, func(i int) error { return insist(p, mailbox("more", first+i), true) })
			}
		}
		rows, err = f.compare("an admission", ask)
		return err
	})
	return rows, err
}

// redisMix compares three denials and the admission of a new mailbox in turn.
func redisMix() (rows []row, err error) {
	err = withField(func(f *field) error {
		all, fresh := mailboxes(full), 0
		if err := f.fill(all, 10); err != nil {
			return err
		}
		ask := func(p peer, no bool) func() (float64, error) {
			return func() (float64, error) {
				first := fresh
				fresh += batch
				return spread(callers, batch, func(i int) error {
					if i%4 == 0 {
						return insist(p, mailbox("more", first+i), true)
					}
					return insist(p, all[i%full], no)
				})
			}
		}
		rows, err = f.compare("three denials, one admission", ask)
		return err
	})
	return rows, err
}

// insist takes once and checks the answer.
func insist(p peer, mailbox string, want bool) error {
	allowed, err := p.take(mailbox)
	if err == nil && allowed != want {
		return map[bool]error{true: errAdmitted, false: errDenied}[allowed]
	}
	return err
}

// compare lets all take turns at the same decisions. The empty script always says yes.
func (f *field) compare(what string, ask func(p peer, no bool) func() (float64, error)) ([]row, error) {
	turn := func(p peer, no bool) func() (cost, error) {
		return func() (cost, error) { return f.server.account(batch, ask(p, no)) }
	}
	filled := turn(f.rates, false)
	read, err := interleave(9,
		side{ours, turn(ourPeer{f.ours}, false)},
		side{plainName, turn(f.plain, false)},
		side{floorName, turn(f.floor, true)},
		side{ratesName, func() (cost, error) {
			if err := f.fillRates(mailboxes(full)); err != nil {
				return cost{}, err
			}
			return filled()
		}},
	)
	if err != nil {
		return nil, err
	}
	what = fmt.Sprintf("redis, %d callers: %s", callers, what)
	return []row{
		read.compare(what, onTheClock, ours, ratesName, 0.3),
		read.compare(what, onTheClock, ours, plainName, 1),
		read.compare(what, onTheClock, ours, floorName, 0),
		read.compare(what, insideRedis, ours, ratesName, 0),
		read.compare(what, insideRedis, ours, plainName, 0),
		read.compare(what, insideRedis, ours, floorName, 0),
	}, nil
}

// fill gives every mailbox up to ten sends, the last of them now, five in the last
// minutes and those before five hours ago, with ours and with the plain script.
func (f *field) fill(all []string, sends int64) error {
	now := time.Now().UnixMilli()
	clock := now
	past, err := openCluster(f.server.addr, throttle.DefaultPolicy(), func() int64 { return clock })
	if err != nil {
		return err
	}
	const minute, hour = 60_000, 3_600_000
	for send := 10 - sends; send < 10; send++ {
		// Five a burst, one a minute, the last of the second burst now.
		clock = now - (1-send/5)*5*hour - (4-send%5)*minute
		if _, err := spread(fillers, len(all), func(i int) error { return admitted(past, all[i]) }); err != nil {
			return errors.Join(err, past.Close())
		}
		if err := f.record(all, clock); err != nil {
			return errors.Join(err, past.Close())
		}
	}
	return past.Close()
}

// record adds a send to every mailbox as the plain script keeps them.
func (f *field) record(all []string, at int64) error {
	_, err := spread(fillers, len(all), func(i int) error {
		send := redis.Z{Score: float64(at), Member: throttle.NewID().String()}
		return f.server.client.ZAdd(context.Background(), all[i], send).Err()
	})
	return err
}

// fillRates makes sure that redis_rate's limit for the minute is spent.
func (f *field) fillRates(all []string) error {
	_, err := spread(fillers, len(all), func(i int) error {
		_, err := f.rates.take(all[i])
		return err
	})
	return err
}
