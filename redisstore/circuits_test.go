package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/breaker"
)

// Timed steps of two servers, of which one fails.
func TestCircuits(t *testing.T) {
	now := int64(1000)
	c := newCircuits(func() int64 { return now })
	look := func(step string, calm, open bool, resting int, due ...string) {
		t.Helper()
		got := c.due()
		if c.calm() != calm || c.open("a") != open || c.open("b") || c.count() != resting || !slices.Equal(got, due) {
			t.Fatalf("%s: calm %v, a rests %v, b %v, %d in all, trials due %v", step, c.calm(), c.open("a"), c.open("b"), c.count(), got)
		}
	}
	fail := func(times int) (opened int) {
		for range times {
			if c.failed("a") {
				opened++
			}
		}
		return opened
	}
	look("at first", true, false, 0)
	c.answered("b")
	if fail(2) != 0 {
		t.Fatal("opened by two failures")
	}
	look("two failures", false, false, 0)
	c.answered("a")
	look("an answer starts the count anew", true, false, 0)
	fail(2)
	if fail(2) != 1 {
		t.Fatal("not opened once, by the third failure")
	}
	look("it rests", false, true, 1)
	c.answered("a")
	look("a straggler's answer says nothing", false, true, 1)
	now += 499
	look("half a second is not over", false, true, 1)
	now++
	look("a trial is due", false, true, 1, "a")
	look("one at a time", false, true, 1)
	c.tried("a", breaker.Failed)
	now += 500
	look("the rest is no longer than before", false, true, 1, "a")
	c.tried("a", breaker.Answered)
	look("back", true, false, 0)
	c.tried("a", breaker.Failed)
	look("a late trial of one that is well says nothing", true, false, 0)
	fail(2)
	now += suspicion
	look("still remembered", false, false, 0)
	now++
	c.due()
	look("forgotten, as nobody asks it", true, false, 0)
}

// What speaks against a server: that it did not answer. Whatever it answered does not.
func TestLost(t *testing.T) {
	for _, err := range []error{
		context.DeadlineExceeded, io.EOF, net.ErrClosed, syscall.EPIPE, redis.ErrPoolTimeout, os.ErrDeadlineExceeded,
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		&net.DNSError{Err: "no such host"},
	} {
		if !lost(fmt.Errorf("asking: %w", err)) {
			t.Errorf("%v is not taken for a lost answer", err)
		}
	}
	for _, err := range []error{redis.Nil, redis.TxFailedErr, ErrTooLate, ErrReply, context.Canceled, errors.New("1 of 2 replicas")} {
		if lost(err) {
			t.Errorf("%v is taken for a lost answer", err)
		}
	}
}
