package redisx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrSilent means that Redis did not answer within Options.Timeout. It is not
// context.DeadlineExceeded, which is the end of the caller's own time.
var ErrSilent = errors.New("Redis did not answer in time")

// deadline is the outer hook of a client: it ends each call in time, and explains errors.
type deadline struct {
	timeout time.Duration
	format  *format
}

type beganKey struct{} // of a context inside a call: when it began

// Call returns a context whose commands are one call: all of them together have one
// Options.Timeout, which begins now.
func Call(ctx context.Context) context.Context {
	if ctx.Value(beganKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, beganKey{}, time.Now())
}

// called returns when the call of the context began.
func called(ctx context.Context) time.Time { return ctx.Value(beganKey{}).(time.Time) }

func (d *deadline) within(ctx context.Context, next func(context.Context) error) error {
	ctx = Call(ctx)
	end := called(ctx).Add(d.timeout)
	ctx, cancel := context.WithDeadlineCause(ctx, end, ErrSilent)
	defer cancel()
	err := d.format.check(ctx)
	if err == nil {
		err = next(ctx)
	}
	var network net.Error
	switch {
	case err == nil || err == redis.Nil || saysWhy(err):
		return err
	case IsReply(err):
		return withoutArguments(err)
	case endOf(ctx) == ErrSilent,
		ctx.Err() == nil && (errors.As(err, &network) && network.Timeout() || errors.Is(err, redis.ErrPoolTimeout)):
		return fmt.Errorf("%w (%s)", ErrSilent, d.timeout)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// endOf returns why the context has ended, or nil if it has not. A connection can meet the deadline
// just before its context does, which is then waited for.
func endOf(ctx context.Context) error {
	if end, bounded := ctx.Deadline(); bounded && !time.Now().Before(end) {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}

// IsReply reports whether the error is an answer of Redis, not the lack of one.
func IsReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// Unanswered reports whether the error of a command says that a server did not answer, though its
// caller did not give up. Both are those that a hook has.
func Unanswered(ctx context.Context, err error) bool {
	if err == nil || IsReply(err) || saysWhy(err) {
		return false
	}
	end := endOf(ctx)
	return end == nil || end == ErrSilent
}

// saysWhy reports whether the error is one of this package's own.
func saysWhy(err error) bool {
	for _, own := range []error{ErrUnconfirmed, ErrAway, ErrFormat, errCrowded} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// reply is an answer of Redis without what it repeats of the command.
type reply struct {
	text  string
	cause error
}

func (r reply) Error() string { return r.text }
func (r reply) Unwrap() error { return r.cause }

// withoutArguments cuts an answer where it repeats the command, which names the key, or the
// program.
func withoutArguments(err error) error {
	text := err.Error()
	for _, from := range []string{", with args", " script: ", ", on @user_script"} {
		text, _, _ = strings.Cut(text, from)
	}
	return reply{text, err}
}

// Undone reports whether the error proves that Redis was not asked.
func Undone(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial" || saysWhy(err) && !errors.Is(err, ErrUnconfirmed)
}
