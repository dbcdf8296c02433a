package cluster

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

	deadlines deadlines
}

// A runner runs a script once and returns its reply.
type runner func(ctx context.Context, s *script, key string, args []any) (string, error)

func connect(servers Servers, timeout time.Duration) (*redisClient, error) {
	client := servers.open(timeout)
	pipelines, ok := client.(interface {
		AsyncAutoPipelineWithOptions(*redis.AutoPipelineOptions) (*redis.AutoPipeliner, error)
	})
	if !ok {
		return nil, fmt.Errorf("a client of type %T cannot share connections", client)
	}
	shared, err := pipelines.AsyncAutoPipelineWithOptions(redis.DefaultAutoPipelineOptions())
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &redisClient{client: client, shared: shared}, nil
}

// within runs a script and answers before the timeout. When a connection broke nobody
// knows whether the script ran. Every script here may run twice, so it is run again
// as long as there is time; a release or reset that was carried out unheard then has
// nothing left to report.
func (c *redisClient) within(ctx context.Context, timeout time.Duration, run runner, s *script, key string, args ...any) (string, error) {
	ctx, done := c.deadlines.within(ctx, timeout)
	defer done()
	const tries = 3
	var err error
	for range tries {
		var reply string
		if reply, err = run(ctx, s, key, args); err == nil || !broken(err) || ctx.Err() != nil {
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
func (c *redisClient) run(ctx context.Context, s *script, key string, args []any) (string, error) {
	cmd := s.byName(ctx, key, args)
	err := c.shared.Submit(ctx, cmd).WaitContext(ctx)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.whole(ctx, key, args)
		err = c.shared.Submit(ctx, cmd).WaitContext(ctx)
	}
	if err != nil {
		return "", err // the command may still be on its way: its result is not ours to read
	}
	return cmd.Val(), nil
}

func (c *redisClient) close() error {
	return errors.Join(c.shared.Close(), c.client.Close())
}
