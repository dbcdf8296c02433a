package redisstore

import (
	"context"
	"errors"
	"strconv"
)

// A Call is one step on the record under one key, and how long it may take. Its errors
// say why there is no answer, and name neither the key nor a word.
type Call struct {
	store *Store
	ctx   context.Context
	asker context.Context // whose call it is
	end   func()
	key   string
}

// Begin begins a call on a key, which is a prefix of the store and what follows it. End
// has to be called. A context that has ended is an error: nothing is asked for nobody.
func (s *Store) Begin(ctx context.Context, key string) (Call, error) {
	if err := ctx.Err(); err != nil {
		return Call{}, err
	}
	within, end := s.within(ctx)
	return Call{store: s, ctx: within, asker: ctx, end: end, key: key}, nil
}

// End frees what the call holds.
func (c Call) End() { c.end() }

// Ask runs a script until it is answered. Behind the words it is handed a test's clock,
// as two words that TIME would tell: seconds and microseconds.
func (c Call) Ask(script *Script, words ...any) (reply string, err error) {
	if err := c.store.pass(c.asker, c.key); err != nil {
		return "", err
	}
	reply, err = c.store.redis.insist(c.ctx, c.store.runner(script), script, c.key, append(words, c.store.clockWords()...))
	return reply, c.store.judge(c.asker, c.key, err)
}

// Once is Ask for a script that must not run twice.
func (c Call) Once(script *Script, words ...any) (reply string, err error) {
	if err := c.store.pass(c.asker, c.key); err != nil {
		return "", err
	}
	reply, err = c.store.runner(script)(c.ctx, script, c.key, append(words, c.store.clockWords()...))
	err = refused(err)
	return reply, c.store.judge(c.asker, c.key, err)
}

// Hear is Ask for a script that tells the time, which read takes from its reply.
func (c Call) Hear(script *Script, read func(reply string) (now int64, err error), words ...any) error {
	sent := c.store.servers.here()
	reply, err := c.Ask(script, words...)
	if err != nil {
		return err
	}
	now, err := read(reply)
	if err != nil {
		return err
	}
	c.store.servers.learn(c.key, sent, c.store.servers.here(), now)
	return nil
}

// ErrTooLate means that Redis came to a decision when nobody waited for it any more, and
// did nothing.
var ErrTooLate = errors.New("redis came to the decision too late")

// Decide is Ask for a script that is to do nothing for a caller who has long gone away:
// a server that hangs for a while would otherwise do it for them all. Behind the words,
// and before a test's clock, the script is handed the millisecond after which nobody
// waits, or the empty word.
//
// From each reply read takes the server's clock, and whether it was too late. If it was,
// by a clock that has changed, the script runs once more.
func (c Call) Decide(script *Script, read func(reply string) (now int64, late bool, err error), words ...any) error {
	return c.decide(c.Ask, script, read, words)
}

// DecideOnce is Decide for a script that must not run twice.
func (c Call) DecideOnce(script *Script, read func(reply string) (now int64, late bool, err error), words ...any) error {
	return c.decide(c.Once, script, read, words)
}

func (c Call) decide(run func(script *Script, words ...any) (string, error), script *Script, read func(reply string) (now int64, late bool, err error), words []any) error {
	for again := range 2 {
		sent := c.store.servers.here()
		reply, err := run(script, append(words[:len(words):len(words)], c.notAfter(sent))...)
		if again > 0 && Undone(err) {
			return ErrTooLate // as before, which may have been said to a repetition
		}
		if err != nil {
			return err
		}
		now, late, err := read(reply)
		if err != nil {
			return err
		}
		c.store.servers.learn(c.key, sent, c.store.servers.here(), now)
		if !late {
			return nil
		}
	}
	return ErrTooLate
}

// notAfter is when the server may give up on what was sent now.
func (c Call) notAfter(sent int64) string {
	now, known := c.store.servers.there(c.key, sent)
	if !known || c.store.clock != nil {
		return ""
	}
	return strconv.FormatInt(now+c.store.timeout.Milliseconds(), 10)
}

// runner is how a script is run.
func (s *Store) runner(script *Script) runner {
	if s.confirm > 0 && script.written != nil {
		return s.redis.runConfirmed(s.confirm)
	}
	return s.redis.run
}
