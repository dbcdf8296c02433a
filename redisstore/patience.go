package redisstore

import (
	"context"
	"slices"
	"sync"
)

// Patience returns a context for calls that belong together, such as the steps of one
// request, so that together they wait for a server in vain no longer than one would: where
// one was not answered in time, the later ones on keys of the same server fail at once, with
// ErrResting. Other servers are asked as ever, and so is this one by everybody else, as one
// answer that was lost tells little of it. Replicas that have not confirmed in time are
// given a moment each time after that, while their master is asked as ever.
func Patience(ctx context.Context) context.Context { return &patience{Context: ctx} }

// patience remembers for whom a request has waited in vain.
type patience struct {
	context.Context

	mu    sync.Mutex
	spent []string // a server or its replicas; mostly none, and never many
}

type patienceKey struct{}

// Value implements context.Context.
func (p *patience) Value(key any) any {
	if key == (patienceKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// patienceOf is that of the request a context belongs to; nil, which waits every time, if
// it belongs to none.
func patienceOf(ctx context.Context) *patience {
	p, _ := ctx.Value(patienceKey{}).(*patience)
	return p
}

// whole reports that nobody was waited for in vain.
func (p *patience) whole() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.spent) == 0
}

func (p *patience) spentOn(whom string) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.spent, whom)
}

func (p *patience) spend(whom string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.spent, whom) {
		p.spent = append(p.spent, whom)
	}
}

// replicasOf is what the replicas of a master are called, as opposed to itself.
func replicasOf(address string) string { return "the replicas of " + address }
