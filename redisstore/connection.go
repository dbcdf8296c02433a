package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisClient runs scripts on whatever kind of Redis the URL names.
type redisClient struct {
	client    redis.UniversalClient
	lines     sync.Map // *line to each master, by its *redis.Client
	newcomers newcomers
	name      string // what the server is called, where there is only one
	servers   servers
	timeout   time.Duration
}

// A line is what calls to one master share. Each master has its own, so that one that hangs
// holds up its own callers alone.
type line struct {
	pipeline   *redis.AutoPipeliner // what many callers ask at once travels in together
	confirming chan struct{}        // full of those that wait for replicas
}

// A runner runs a script once and returns its reply.
type runner func(ctx context.Context, s *Script, key string, words []any) (string, error)

func connect(servers servers, timeout time.Duration, confirm bool) *redisClient {
	size := 0
	if confirm { // for all that may wait for replicas, and for some that do not
		size = confirming + 16
	}
	return &redisClient{client: servers.open(timeout, size), name: servers.addresses[0], servers: servers, timeout: timeout}
}

// line finds the line to the key's master.
func (c *redisClient) line(ctx context.Context, key string) (*line, error) {
	master, err := c.master(ctx, key)
	if err != nil {
		return nil, err
	}
	if known, ok := c.lines.Load(master); ok {
		return known.(*line), nil
	}
	pipeline, err := master.AsyncAutoPipeline()
	if err != nil {
		return nil, err
	}
	c.lines.Range(func(other, its any) bool {
		if its.(*line).pipeline.IsClosed() { // its master was replaced
			c.lines.Delete(other)
		}
		return true
	})
	mine, _ := c.lines.LoadOrStore(master, &line{pipeline, make(chan struct{}, confirming)})
	return mine.(*line), nil
}

// insist runs a script until it is answered. When a connection breaks, nobody knows
// whether the script ran, so this is for scripts that may run twice. A refusal after that
// proves nothing: the run before it may have done the work.
func (c *redisClient) insist(ctx context.Context, run runner, s *Script, key string, words []any) (reply string, err error) {
	reply, err = run(ctx, s, key, words)
	if !broken(err) {
		return reply, refused(err)
	}
	const more = 2
	for range more {
		if ctx.Err() != nil {
			break
		}
		if reply, err = run(ctx, s, key, words); !broken(err) {
			break
		}
	}
	return reply, err
}

// broken reports whether the connection was lost on the way.
func broken(err error) bool {
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// run is the ordinary runner.
func (c *redisClient) run(ctx context.Context, s *Script, key string, words []any) (string, error) {
	line, err := c.line(ctx, key)
	if err != nil {
		return "", unsent{err}
	}
	reply, err := s.run(ctx, line.ask, key, words)
	if elsewhere(err) {
		// Outside of the pipelines the library follows a slot that has moved, and drops the
		// connection to a master that has become a replica.
		return s.run(ctx, alone(c.client), key, words)
	}
	return reply, err
}

// ask sends a command with those of others. Where it fails the command may still be on its
// way: its result is not ours to read.
func (l *line) ask(ctx context.Context, cmd command) (string, error) {
	if err := l.pipeline.Submit(ctx, cmd).WaitContext(ctx); err != nil {
		return "", err
	}
	return cmd.Val(), nil
}

// elsewhere reports whether a server said that another is to be asked: the slot has moved,
// or a master has become a replica.
func elsewhere(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, asked := redis.IsAskError(err)
	return moved || asked || redis.IsReadOnlyError(err)
}

// alone sends a command outside of the pipelines.
func alone(on interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}) sender {
	return func(ctx context.Context, cmd command) (string, error) {
		if err := on.Process(ctx, cmd); err != nil {
			return "", err
		}
		return cmd.Val(), nil
	}
}

// close waits for what was sent.
func (c *redisClient) close() (err error) {
	c.lines.Range(func(_, its any) bool {
		err = errors.Join(err, its.(*line).pipeline.Close())
		return true
	})
	c.newcomers.close()
	return errors.Join(err, c.client.Close())
}
