// Package cluster is the idempotency.Keeper of many processes, in Redis.
//
// The record of a name is one string, and each step one script that looks and writes in
// one piece, by the server's clock: of any number of processes that ask at once exactly
// one is told to do a request. What was asked is compared in the script, and a lease by
// its token. Every record goes from Redis by itself when it has ended.
//
// A step whose answer was lost is repeated, and is told again what it was told before. A
// Begin that comes to Redis when its caller has given up gives no lease, since nobody
// would use it; a Finish or an Abandon is right however late it comes.
//
// Package redisstore has the connections, and says what a failover can forget: a lease or
// an answer, and then a request is done twice. With Options.Confirm neither is answered
// for before replicas have it.
package cluster

import (
	"context"
	"fmt"
	"strconv"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/redisstore"
)

// requests stands in the keys. No limiter has a name with a dot that this could be.
const requests = "idempotency.requests"

// A Keeper keeps records in Redis. It implements idempotency.Keeper.
type Keeper struct {
	store  *redisstore.Store
	prefix string
	terms  idempotency.Terms
}

// New makes a keeper that keeps its records in the store, under keys that begin with
// "mailgate:idempotency.requests:{}" for the default prefix. The zero Terms are
// idempotency.DefaultTerms. It needs no Close; all keepers of one prefix are one, and
// each record has the terms of the keeper that wrote it.
func New(store *redisstore.Store, terms idempotency.Terms) (*Keeper, error) {
	if terms == (idempotency.Terms{}) {
		terms = idempotency.DefaultTerms()
	}
	if err := terms.Check(); err != nil {
		return nil, fmt.Errorf("opening a keeper of requests: %w", err)
	}
	store.Use(scripts...)
	return &Keeper{store: store, prefix: redisstore.Below(store.Prefix(), requests), terms: terms}, nil
}

// Begin implements idempotency.Keeper.
func (k *Keeper) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	return k.BeginAs(ctx, idempotency.Lease{Name: name, Body: body, Token: idempotency.NewToken()})
}

// BeginAs implements idempotency.Keeper.
func (k *Keeper) BeginAs(ctx context.Context, lease idempotency.Lease) (idempotency.Outcome, error) {
	const doing = "beginning a request"
	if err := lease.Check(); err != nil {
		return idempotency.Outcome{}, fmt.Errorf("%s: %w", doing, err)
	}
	unheard := idempotency.Outcome{Lease: lease} // it may have begun, and only the word of it be lost
	a, err := k.step(ctx, doing, lease.Name, func(call redisstore.Call) (redisstore.Answer, error) {
		return call.Change(beginScript, leaseText(lease), milliseconds(k.terms.Lease))
	})
	if err != nil {
		return unheard, err
	}
	o, err := outcomeOf(a, lease)
	if err != nil {
		return unheard, idempotency.Unavailable(doing, err)
	}
	return o, nil
}

// outcomeOf reads what begin.lua answers to one who asks for this lease.
func outcomeOf(a redisstore.Answer, lease idempotency.Lease) (idempotency.Outcome, error) {
	switch a.Letter {
	case done:
		return idempotency.Outcome{State: idempotency.Started, Lease: lease}, nil
	case mismatch:
		return idempotency.Outcome{State: idempotency.Mismatch}, nil
	case held:
		return idempotency.Outcome{State: idempotency.InFlight, RetryAfter: redisstore.BigEndian(a.More)}, nil
	case replay:
		answer, err := idempotency.ParseAnswer([]byte(a.More))
		if err != nil {
			return idempotency.Outcome{}, redisstore.ErrReply
		}
		return idempotency.Outcome{State: idempotency.Replay, Answer: answer}, nil
	}
	return idempotency.Outcome{}, redisstore.ErrReply
}

// Finish implements idempotency.Keeper.
func (k *Keeper) Finish(ctx context.Context, lease idempotency.Lease, answer idempotency.Answer) (kept bool, err error) {
	const doing = "finishing a request"
	if err := lease.Check(); err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	if err := answer.Check(); err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	a, err := k.step(ctx, doing, lease.Name, func(call redisstore.Call) (redisstore.Answer, error) {
		return call.ChangeLate(finishScript, idempotency.AppendAnswer(leaseText(lease), answer), milliseconds(k.terms.Keep))
	})
	return a.Letter == done && err == nil, err
}

// Abandon implements idempotency.Keeper.
func (k *Keeper) Abandon(ctx context.Context, lease idempotency.Lease) (freed bool, err error) {
	const doing = "abandoning a request"
	if err := lease.Check(); err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	step := idempotency.NewToken() // by which it is known when it is repeated
	a, err := k.step(ctx, doing, lease.Name, func(call redisstore.Call) (redisstore.Answer, error) {
		return call.ChangeLate(abandonScript, leaseText(lease), step[:])
	})
	return a.Letter == done && err == nil, err
}

// step has ask change the record of the name.
func (k *Keeper) step(ctx context.Context, doing string, name idempotency.Name, ask func(redisstore.Call) (redisstore.Answer, error)) (redisstore.Answer, error) {
	call, err := k.store.Begin(ctx, k.prefix+name.Text())
	if err != nil {
		return redisstore.Answer{}, idempotency.Unavailable(doing, err)
	}
	defer call.End()
	a, err := ask(call)
	if err != nil {
		return redisstore.Answer{}, idempotency.Unavailable(doing, err)
	}
	return a, nil
}

// leaseText is a lease as the scripts read it.
func leaseText(l idempotency.Lease) []byte {
	return append(l.Token[:], l.Body[:]...)
}

func milliseconds(n int64) string { return strconv.FormatInt(n, 10) }
