package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisClient runs scripts on whatever kind of Redis the URL names.
type redisClient struct {
	client redis.UniversalClient
	shared *redis.AutoPipeliner // what many callers ask at once travels together
}

// A runner runs a script once and returns its reply.
type runner func(ctx context.Context, s *Script, key string, words []any) (string, error)

func connect(servers servers, timeout time.Duration) (*redisClient, error) {
	client := servers.open(timeout)
	pipelines, ok := client.(interface {
		AsyncAutoPipelineWithOptions(*redis.AutoPipelineOptions) (*redis.AutoPipeliner, error)
	})
	if !ok {
		return nil, fmt.Errorf("a client of type %T cannot share connections", client)
	}
	options := redis.DefaultAutoPipelineOptions()
	if servers.kind == clustered {
		// One batch at a time is on its way for each shard, and waits for the slowest of
		// its masters. With many shards one master that hangs does not hold up the others.
		options.NumShards = 64
		options.Unordered = true
	}
	shared, err := pipelines.AsyncAutoPipelineWithOptions(options)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &redisClient{client: client, shared: shared}, nil
}

// insist runs a script until it is answered. When a connection broke nobody knows
// whether the script ran. So this is for scripts that may run twice.
func (c *redisClient) insist(ctx context.Context, run runner, s *Script, key string, words []any) (reply string, err error) {
	const tries = 3
	for range tries {
		if reply, err = run(ctx, s, key, words); err == nil || !broken(err) || ctx.Err() != nil {
			return reply, err
		}
	}
	return "", err
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
	cmd := s.byName(ctx, key, words)
	err := c.shared.Submit(ctx, cmd).WaitContext(ctx)
	switch {
	case redis.HasErrorPrefix(err, "NOSCRIPT"):
		cmd = s.whole(ctx, key, words)
		err = c.shared.Submit(ctx, cmd).WaitContext(ctx)
	case redis.IsReadOnlyError(err):
		// A master that has become a replica. Alone the library drops the connection for
		// such an answer; in a pipeline it would go on using it.
		cmd = s.byName(ctx, key, words)
		err = c.client.Process(ctx, cmd)
	}
	if err != nil {
		return "", err // the command may still be on its way: its result is not ours to read
	}
	return cmd.Val(), nil
}

func (c *redisClient) close() error {
	return errors.Join(c.shared.Close(), c.client.Close())
}
