package main

import (
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// throughRedis compares the algorithm in Redis, 256 callers at once. Every scene has a
// server of its own.
func (a algorithm) throughRedis() (rows []row, err error) {
	for _, s := range a.scenes() {
		if !s.yes {
			s.keys = min(s.keys, full)
		}
		err := withRedis(func(server *redisServer) error {
			more, err := a.playIn(server, s)
			rows = append(rows, more...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return rows, nil
}

// playIn has ours and each peer ask the same of one server.
func (a algorithm) playIn(server *redisServer, s scene) (rows []row, err error) {
	m, err := a.meter(s.tier)
	if err != nil {
		return nil, err
	}
	limiter, err := openCluster(server.addr, throttle.DefaultPolicy(), nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, limiter.Close()) }()
	what := fmt.Sprintf("redis, %s: %s", a.name, s.what)
	var against []contender
	sides := []side{{ours, s.askedOf(server, ourPeer{limiter.meters.Limiter("bench", m)})}}
	for _, c := range a.inRedis {
		if c.alone && s.yes && s.keys == 1 {
			rows = append(rows, notMeasured(what+", "+c.name, "each of its callers tries again for every other"))
			continue
		}
		p, stop, err := c.open(server.addr, s.tier)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		defer stop()
		sides = append(sides, side{c.name, s.askedOf(server, p)})
		against = append(against, c)
	}
	read, err := interleave(5, sides...)
	if err != nil {
		return nil, err
	}
	for _, c := range against {
		rows = append(rows, read.compare(what, onTheClock, ours, c.name, c.required))
		if !c.commands {
			rows = append(rows, read.compare(what, insideRedis, ours, c.name, 0))
		}
	}
	return rows, nil
}

// askedOf is a round of the scene. Its first fills the keys.
func (s scene) askedOf(server *redisServer, p peer) func() (cost, error) {
	order, next, filled := s.order(), 0, false
	return func() (cost, error) {
		if !filled {
			if err := s.prepare(p); err != nil {
				return cost{}, err
			}
			filled = true
		}
		first := next
		next += batch
		return server.account(batch, func() (float64, error) {
			return spread(callers, batch, func(i int) error { return insist(p, order[(first+i)%len(order)], s.yes) })
		})
	}
}
