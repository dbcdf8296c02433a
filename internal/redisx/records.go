package redisx

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// began is where this process counts time from, which no clock setting changes.
var began = time.Now()

// Records are those of a client. They know the clocks of its masters by the answers that told them.
type Records struct {
	client  redis.UniversalClient
	timeout time.Duration // that a call waits for a reply
	clocks  sync.Map      // *clock by the address of the master
}

// clock is how many microseconds the clock of a master is ahead of the time since began, at least and at most, unless it
// is set. 0 is not known.
type clock struct {
	mu          sync.Mutex
	least, most int64
}

// hear takes the bounds that an answer gives. Those of earlier answers hold too, as one that came late gives wide ones,
// until they contradict it: then the clock was set, or has drifted.
func (c *clock) hear(least, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if least <= c.most && c.least <= most {
		least, most = max(least, c.least), min(most, c.most)
	}
	c.least, c.most = least, most
}

func (c *clock) ahead() (least, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.least, c.most
}

// NewRecords returns the records of a client.
func NewRecords(client redis.UniversalClient) *Records {
	r := &Records{client: client}
	switch client := client.(type) {
	case *redis.Client:
		r.timeout = client.Options().ReadTimeout
	case *redis.ClusterClient:
		r.timeout = client.Options().ReadTimeout
	}
	return r
}

// ErrReply means that Redis has answered a script in a way that its program does not.
var ErrReply = errors.New("Redis sent a reply of an unknown form")

// Answer is that of a script which takes a step on the record of a key.
type Answer struct {
	Did    byte   // a digit, or another sign of the script
	Now    int64  // by the clock of the master, in milliseconds
	Before []byte // the record before the step; nil for none
}

// Run runs such a script, by [Script.Run]. It answers with the byte of Did, six of Now, and Before.
func (r *Records) Run(ctx context.Context, s *Script, key string, args ...any) (a Answer, err error) {
	sent := time.Since(began)
	answer, err := s.Run(ctx, r.client, key, args...)
	if err != nil {
		return a, err
	}
	text, _ := answer.(string)
	if len(text) < 7 {
		return a, ErrReply
	}
	var now [8]byte
	copy(now[2:], text[1:7])
	a = Answer{Did: text[0], Now: int64(binary.BigEndian.Uint64(now[:]))}
	if len(text) > 7 {
		a.Before = []byte(text[7:])
	}
	r.clockOf(key).hear(a.Now*1000-time.Since(began).Microseconds(), a.Now*1000+999-sent.Microseconds())
	return a, nil
}

// Did reports of the answer to such a script whether it did one of these.
func Did(signs string) func(answer any) bool {
	return func(answer any) bool {
		text, _ := answer.(string)
		return text != "" && strings.Contains(signs, text[:1])
	}
}

// clockOf returns that of a key's master. In a Cluster, it may be known only after a call.
func (r *Records) clockOf(key string) *clock {
	address := AddressOf(r.client, key)
	found, known := r.clocks.Load(address)
	if !known {
		found, _ = r.clocks.LoadOrStore(address, new(clock))
	}
	return found.(*clock)
}

// Now returns a millisecond that the clock of a key's master has reached just now or shortly before, 0 if it was not heard.
func (r *Records) Now(key string) int64 {
	ahead, _ := r.clockOf(key).ahead()
	if ahead == 0 {
		return 0
	}
	return (time.Since(began).Microseconds() + ahead) / 1000
}

// NotAfter returns the time of a key's master after which no caller waits for the answer to a command of the [Call], empty
// if that is not known.
func (r *Records) NotAfter(ctx context.Context, key string) string {
	_, ahead := r.clockOf(key).ahead()
	end, bounded := ctx.Deadline()
	if own := called(ctx).Add(r.timeout); r.timeout > 0 && (!bounded || own.Before(end)) {
		end, bounded = own, true
	}
	if ahead == 0 || !bounded {
		return ""
	}
	return strconv.FormatInt((end.Sub(began).Microseconds()+ahead)/1000, 10)
}
