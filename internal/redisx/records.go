package redisx

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Records are those of a client. They know the clocks of its masters by the answers that told them.
type Records struct {
	client  redis.UniversalClient
	timeout time.Duration // that a call waits for a reply
	clocks  sync.Map      // *Clock by the address of the master
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
	asked := time.Now()
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
	r.clockOf(key).Hear(a.Now, asked)
	return a, nil
}

// Did reports of the answer to such a script whether it did one of these.
func Did(signs string) func(answer any) bool {
	return func(answer any) bool {
		text, _ := answer.(string)
		return text != "" && strings.Contains(signs, text[:1])
	}
}

var (
	//go:embed confirm.lua
	confirmSource string
	confirmScript = NewScript(confirmSource, func(any) bool { return true })
)

// Confirm waits until replicas have all earlier writes to a key. A caller whose script had nothing to do needs it: an earlier
// run may have done it, unconfirmed. Without Options.Confirm it asks nothing.
func (r *Records) Confirm(ctx context.Context, key string) error {
	_, err := confirmScript.Run(ctx, r.client, key)
	return err
}

// clockOf returns that of a key's master. In a Cluster, it may be known only after a call.
func (r *Records) clockOf(key string) *Clock {
	address := AddressOf(r.client, key)
	found, known := r.clocks.Load(address)
	if !known {
		found, _ = r.clocks.LoadOrStore(address, new(Clock))
	}
	return found.(*Clock)
}

// Now returns what [Clock.Now] does for the clock of a key's master.
func (r *Records) Now(key string) int64 { return r.clockOf(key).Now() }

// End returns when the [Call] times out, by the clock of a key's master: a little early rather than late. Before the first
// answer of the master it is 0, so that a command does nothing and its answer tells the clock. It is empty if the call has no
// timeout.
func (r *Records) End(ctx context.Context, key string) string {
	end, bounded := ctx.Deadline()
	if own := called(ctx).Add(r.timeout); r.timeout > 0 && (!bounded || own.Before(end)) {
		end, bounded = own, true
	}
	if !bounded {
		return ""
	}
	return strconv.FormatInt(r.clockOf(key).in(time.Until(end)), 10)
}
