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
	pipelines sync.Map // *redis.AutoPipeliner of each master, by its *redis.Client
	newcomers newcomers
	name      string // what the server is called, where there is only one
}

// A runner runs a script once and returns its reply.
type runner func(ctx context.Context, s *Script, key string, words []any) (string, error)

func connect(servers servers, timeout time.Duration) *redisClient {
	return &redisClient{client: servers.open(timeout), name: servers.addresses[0]}
}

// pipeline is what many callers ask at once of the key's master travels in together. Each
// master has its own, so that who asks one that hangs holds up nobody who asks another.
func (c *redisClient) pipeline(ctx context.Context, key string) (*redis.AutoPipeliner, error) {
	master, err := c.master(ctx, key)
	if err != nil {
		return nil, err
	}
	if known, ok := c.pipelines.Load(master); ok {
		return known.(*redis.AutoPipeliner), nil
	}
	pipeline, err := master.AsyncAutoPipeline()
	if err != nil {
		return nil, err
	}
	c.pipelines.Range(func(other, its any) bool {
		if its.(*redis.AutoPipeliner).IsClosed() { // its master was replaced
			c.pipelines.Delete(other)
		}
		return true
	})
	c.pipelines.Store(master, pipeline)
	return pipeline, nil
}

// insist runs a script until it is answered. When a connection broke nobody knows
// whether the script ran. So this is for scripts that may run twice, and what is refused
// after that may have been done before.
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
	pipeline, err := c.pipeline(ctx, key)
	if err != nil {
		return "", unsent{err}
	}
	cmd := s.byName(ctx, key, words)
	err = pipeline.Submit(ctx, cmd).WaitContext(ctx)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.whole(ctx, key, words)
		err = pipeline.Submit(ctx, cmd).WaitContext(ctx)
	}
	if elsewhere(err) {
		return c.runAlone(ctx, s, key, words)
	}
	if err != nil {
		return "", err // the command may still be on its way: its result is not ours to read
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

// runAlone runs a script outside of the pipelines. There the library follows a slot that
// has moved, and drops the connection to a master that has become a replica.
func (c *redisClient) runAlone(ctx context.Context, s *Script, key string, words []any) (string, error) {
	cmd := s.byName(ctx, key, words)
	err := c.client.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.whole(ctx, key, words)
		err = c.client.Process(ctx, cmd)
	}
	if err != nil {
		return "", err
	}
	return cmd.Val(), nil
}

// close waits for what was sent.
func (c *redisClient) close() (err error) {
	c.pipelines.Range(func(_, pipeline any) bool {
		err = errors.Join(err, pipeline.(*redis.AutoPipeliner).Close())
		return true
	})
	c.newcomers.close()
	return errors.Join(err, c.client.Close())
}
