package redisx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrAway means that the master is known not to answer, and was not asked.
	ErrAway = errors.New("Redis is away")
	// ErrUnconfirmed means that the master has done what it was asked, and that too few
	// replicas are known to have it.
	ErrUnconfirmed = errors.New("replicas have not confirmed the write")
	// errCrowded means that a call was not made.
	errCrowded = errors.New("too many calls are waiting for replicas")
)

const (
	// maxConfirming is how many calls may wait for the replicas of one master, each on a
	// connection of its own.
	maxConfirming = 256
	// wayBack is what WAIT leaves of the time for its answer to arrive.
	wayBack = 10 * time.Millisecond
)

// master is the hook of a client of one server: scripts travel together, or are confirmed.
type master struct {
	client     *redis.Client
	pipeline   func() (*redis.AutoPipeliner, error)
	confirm    int           // replicas
	confirming chan struct{} // full of the calls that may write
}

func newMaster(client *redis.Client, confirm int) *master {
	return &master{client, sync.OnceValues(client.AsyncAutoPipeline), confirm, make(chan struct{}, maxConfirming)}
}

// DialHook implements redis.Hook.
func (m *master) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (m *master) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r, ok := cmd.(run)
		if ok && r.script == confirmScript && m.confirm == 0 { // there is nothing to wait for
			return nil
		}
		if ok && m.confirms(r) {
			return m.confirmed(ctx, r)
		}
		if ok {
			// A connection to a master that has become a replica is dropped only outside of the
			// pipeline.
			if err := m.together(ctx, r); !redis.IsReadOnlyError(err) {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook. A Script is in a pipeline where a Cluster sends
// it to the new master of a slot that moves, behind ASKING.
func (m *master) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if r, ok := cmds[len(cmds)-1].(run); ok && m.confirms(r) {
			return m.confirmed(ctx, r, cmds[:len(cmds)-1]...)
		}
		return next(ctx, cmds)
	}
}

// together sends a script in one pipeline with those that other callers send at that time. The
// pipeline passes all hooks.
func (m *master) together(ctx context.Context, r run) error {
	pipeline, err := m.pipeline()
	if err != nil {
		return err
	}
	own := unrepeated{redis.NewCmd(ctx, r.Args()...)} // the library may write to it after ctx has ended
	if err := pipeline.Submit(ctx, own).WaitContext(ctx); err != nil {
		return err
	}
	r.SetVal(own.Val())
	return nil
}

// confirms reports whether replicas must have what the script writes.
func (m *master) confirms(r run) bool { return m.confirm > 0 && r.script.wrote != nil }

// confirmed runs a script, behind other commands, and waits for the replicas if it wrote. WAIT
// speaks for the writes of its own connection, so all travel on one that no other call shares
// meanwhile.
func (m *master) confirmed(ctx context.Context, r run, before ...redis.Cmder) error {
	end, _ := ctx.Deadline()
	select {
	case m.confirming <- struct{}{}:
	case <-time.After(time.Until(end) / 2): // one that begins later could not be confirmed any more
		return errCrowded
	}
	defer func() { <-m.confirming }()
	conn := m.client.Conn()
	defer conn.Close()
	_, err := conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		return p.BatchProcess(ctx, slices.Concat(before, []redis.Cmder{unrepeated{r.Cmd}})...)
	})
	if err != nil || !r.script.wrote(r.Val()) {
		return err
	}
	left := max(time.Millisecond, time.Until(end)-wayBack)
	replicas, err := conn.Wait(ctx, m.confirm, left).Result()
	if err != nil || replicas < int64(m.confirm) {
		return fmt.Errorf("%w in time: %d of %d have", ErrUnconfirmed, replicas, m.confirm)
	}
	return nil
}
