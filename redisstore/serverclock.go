package redisstore

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/clock"
)

// serverClocks know how far each server's clock is ahead of the time since this process
// began, from the answers it gave. In a cluster every slot has its own server, and a
// slot can move, so it is kept for each slot; until a slot has answered, the last
// answer of any stands in for it.
type serverClocks struct {
	began   time.Time
	last    atomic.Int64        // milliseconds, at the most; 0 as long as nothing is known
	ahead   [slots]atomic.Int64 // the same
	certain atomic.Int64        // the same, at the least
}

const slots = 1 << 14

func newServerClocks() *serverClocks { return &serverClocks{began: time.Now()} }

// here is the time since this process began, which no clock setting changes.
func (c *serverClocks) here() int64 { return time.Since(c.began).Milliseconds() }

// there is the time at the key's server when it is sent here, or a little later.
func (c *serverClocks) there(key string, sent int64) (now int64, known bool) {
	ahead := cmp.Or(c.ahead[slotOf(key)].Load(), c.last.Load())
	return sent + ahead, ahead != 0
}

// learn notes the clock that a server has told. It was read after the question was sent, so
// there is never early; and before the answer was received, so at is never ahead of a clock
// that nobody sets.
func (c *serverClocks) learn(key string, sent, received, now int64) {
	c.ahead[slotOf(key)].Store(now - sent)
	c.hear(sent, received, now)
}

// hear is learn for an answer of any server.
func (c *serverClocks) hear(sent, received, now int64) {
	c.last.Store(now - sent)
	// Both times are cut to milliseconds. An answer that was slow tells less than a quick
	// one before it, unless they disagree.
	least := now - received - 1
	if known := c.certain.Load(); known < least || known > now-sent {
		c.certain.Store(least)
	}
}

// at is the time at the servers when it is this time here, or a little earlier.
func (c *serverClocks) at(here int64) (now int64, known bool) {
	certain := c.certain.Load()
	return here + certain, certain != 0
}

// Now is the servers' clock, as heard from their answers and carried on from there. Setting
// this machine's clock changes nothing about it. Until a server has answered it is this
// machine's clock; Options.Clock goes before both.
//
// Where the servers' clocks agree it is not ahead of them, and behind by at most what the
// quickest of their answers took to come back, and a millisecond. Where they differ, or one
// is set, it steps when an answer contradicts it; one that took long does so less easily, and
// by less than it took the clock may stay ahead of that server.
func (s *Store) Now() int64 {
	if s.clock != nil {
		return s.clock()
	}
	if now, known := s.servers.at(s.servers.here()); known {
		return now
	}
	return clock.Now()
}

// learnClock asks what time it is, unless a server has told.
func (s *Store) learnClock(ctx context.Context) {
	if s.servers.last.Load() != 0 {
		return
	}
	sent := s.servers.here()
	if now, err := s.redis.client.Time(ctx).Result(); err == nil {
		s.servers.hear(sent, s.servers.here(), now.UnixMilli())
	}
}

// slotOf is the slot of a key as Redis Cluster counts it: CRC-16/XMODEM of what stands
// between the first braces, or of the whole key where there is nothing.
func slotOf(key string) uint16 {
	if _, after, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(after, "}"); closed && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			crc = crc<<1 ^ crc>>15*0x1021
		}
	}
	return crc % slots
}
