package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// confirming is how many calls may wait for the replicas of one master at a time, each on a
// connection of its own. Replicas that lag hold each for as long as a call may take.
const confirming = 256

// errCrowded says nothing of the server: it was not asked.
var errCrowded = errors.New("too many calls wait for replicas to confirm")

// runConfirmed is the runner that makes a yes wait for replicas. Only what writes has to, so
// the script looks first, with all others.
func (c *redisClient) runConfirmed(replicas int) runner {
	return func(ctx context.Context, s *Script, key string, words []any) (string, error) {
		line, err := c.line(ctx, key)
		if err != nil {
			return "", unsent{err}
		}
		reply, err := s.look(ctx, line.ask, key, words)
		switch {
		case err == nil && !s.written(reply):
			return reply, nil
		case err != nil && !isReply(err):
			return "", unsent{err}
		}
		select {
		case line.confirming <- struct{}{}:
			defer func() { <-line.confirming }()
			return c.follow(ctx, replicas, s, key, words)
		case <-ctx.Done():
			return "", unsent{errCrowded}
		}
	}
}

// follow runs the script where the key is. WAIT speaks only for the writes of its own
// connection, so both travel on one that nobody shares. There the library follows no slot that
// has moved, so this does.
func (c *redisClient) follow(ctx context.Context, replicas int, s *Script, key string, words []any) (string, error) {
	master, err := c.master(ctx, key)
	asking := false
	const redirections = 5
	for range redirections {
		if err != nil {
			return "", unsent{err} // who sends on to another has done nothing
		}
		var reply string
		reply, err = confirmOn(ctx, master, asking, replicas, s, key, words)
		address, moved := redis.IsMovedError(err)
		if !moved {
			address, asking = redis.IsAskError(err)
		}
		if !moved && !asking {
			return reply, err
		}
		master, err = c.masterAt(ctx, address, moved, master)
	}
	return "", unsent{errors.New("redis sends us from server to server")}
}

// confirmOn runs the script on one server and, if it wrote, waits for the replicas.
func confirmOn(ctx context.Context, master *redis.Client, asking bool, replicas int, s *Script, key string, words []any) (string, error) {
	conn := master.Conn()
	defer conn.Close()
	if asking {
		if err := conn.Do(ctx, "ASKING").Err(); err != nil {
			return "", err
		}
	}
	run := s.run
	if asking {
		run = s.runWhole // ASKING holds for one command only
	}
	reply, err := run(ctx, alone(conn), key, words)
	if err != nil || !s.written(reply) {
		return reply, err
	}
	return reply, waitFor(ctx, conn, replicas)
}

// errUnconfirmed says nothing of the master: it has done what it was asked.
var errUnconfirmed = errors.New("replicas have not confirmed the write")

// waitFor asks for as long as the deadline leaves, less the way back.
func waitFor(ctx context.Context, conn *redis.Conn, replicas int) error {
	const wayBack = 10 * time.Millisecond
	deadline, _ := ctx.Deadline()
	left := max(time.Millisecond, time.Until(deadline)-wayBack)
	confirmed, err := conn.Wait(ctx, replicas, left).Result()
	switch {
	case broken(err): // it can be asked again
		return fmt.Errorf("%w in time: %w", errUnconfirmed, err)
	case err != nil: // that the time is up is not the caller's
		return fmt.Errorf("%w in time: %v", errUnconfirmed, err)
	}
	if confirmed < int64(replicas) {
		return fmt.Errorf("%w in time: %d of %d have", errUnconfirmed, confirmed, replicas)
	}
	return nil
}
