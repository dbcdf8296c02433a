package redisx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
	"github.com/redis/go-redis/v9"
)

var (
	// ErrResting means that the master has not answered several calls in a row, and was not
	// asked.
	ErrResting = errors.New("Redis does not answer and is not asked for a moment")
	// ErrUnconfirmed means that the master has done what it was asked, and that too few
	// replicas are known to have it.
	ErrUnconfirmed = errors.New("replicas have not confirmed the write")
)

const (
	trialEvery = 500 * time.Millisecond
	// maxConfirming is how many calls may wait for the replicas of one master, each on a
	// connection of its own.
	maxConfirming = 256
	// wayBack is what WAIT leaves of the time for its answer to arrive.
	wayBack = 10 * time.Millisecond
)

// master is the hook of a client of one server: a circuit breaker, and confirmation.
type master struct {
	client     *redis.Client
	circuit    *breaker.Circuit
	confirm    int           // replicas
	confirming chan struct{} // full of the calls that wait for replicas
}

func newMaster(client *redis.Client, o Options) *master {
	began := time.Now()
	rule := breaker.Rule{Failures: 3, Cooldown: trialEvery, MaxCooldown: trialEvery}
	changed := func(open bool) {
		if open {
			o.Log.Warn("Redis circuit breaker opened", "server", client.Options().Addr)
		} else {
			o.Log.Info("Redis circuit breaker closed", "server", client.Options().Addr)
		}
	}
	return &master{
		client:     client,
		circuit:    breaker.NewCircuit(rule, func() int64 { return time.Since(began).Milliseconds() }, changed),
		confirm:    o.Confirm,
		confirming: make(chan struct{}, maxConfirming),
	}
}

// DialHook implements redis.Hook.
func (m *master) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (m *master) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if r, ok := cmd.(run); ok && m.confirm > 0 && r.script.wrote != nil {
			return m.confirmed(ctx, r, func(conn *redis.Conn) error { return conn.Process(ctx, once{r.Cmd}) })
		}
		return m.guard(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook. A Script is in a pipeline where a Cluster sends
// it to the new master of a slot that moves, behind ASKING.
func (m *master) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if r, ok := cmds[len(cmds)-1].(run); ok && m.confirm > 0 && r.script.wrote != nil {
			return m.confirmed(ctx, r, func(conn *redis.Conn) error {
				_, err := conn.Pipelined(ctx, func(p redis.Pipeliner) error {
					_ = p.Process(ctx, redis.NewCmd(ctx, "asking"))
					return p.Process(ctx, once{r.Cmd})
				})
				return err
			})
		}
		err := m.guard(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
		if errors.Is(err, ErrResting) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

type guardKey struct{}

// guard makes a call if the circuit allows it.
func (m *master) guard(ctx context.Context, call func(context.Context) error) error {
	if ctx.Value(guardKey{}) == m { // a handshake inside a call
		return call(ctx)
	}
	pass := m.circuit.Ask()
	if !pass.OK {
		return ErrResting
	}
	err := call(context.WithValue(ctx, guardKey{}, m))
	m.circuit.Settle(pass, outcome(ctx, err))
	return err
}

// outcome is what a call says of its server: any answer speaks for it, and a call that its
// caller gave up says nothing.
func outcome(ctx context.Context, err error) breaker.Outcome {
	if !unanswered(err) {
		return breaker.Answered
	}
	if end := endOf(ctx); end != nil && end != ErrSilent {
		return breaker.NotJudged
	}
	return breaker.Failed
}

// confirmed runs a script and, if it wrote, waits for the replicas. WAIT speaks for the writes
// of its own connection, so both travel on one that no other call shares meanwhile.
func (m *master) confirmed(ctx context.Context, r run, send func(*redis.Conn) error) error {
	conn := m.client.Conn()
	defer conn.Close()
	if err := send(conn); err != nil || !r.script.wrote(r.Val()) {
		return err
	}
	select {
	case m.confirming <- struct{}{}:
		defer func() { <-m.confirming }()
	default:
		return fmt.Errorf("%w: too many calls wait for them", ErrUnconfirmed)
	}
	left := DefaultTimeout
	if end, bounded := ctx.Deadline(); bounded {
		left = max(time.Millisecond, time.Until(end)-wayBack)
	}
	replicas, err := conn.Wait(ctx, m.confirm, left).Result()
	if err != nil {
		return fmt.Errorf("%w in time", ErrUnconfirmed)
	}
	if replicas < int64(m.confirm) {
		return fmt.Errorf("%w in time: %d of %d have", ErrUnconfirmed, replicas, m.confirm)
	}
	return nil
}
