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
// answer that was lost tells little of it. One whose replicas do not confirm has answered,
// and goes on deciding.
func Patience(ctx context.Context) context.Context { return &patience{Context: ctx} }

// patience remembers which servers a request has waited for in vain.
type patience struct {
	context.Context

	mu    sync.Mutex
	spent []string // their addresses; mostly none, and never many
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

// whole reports that no server was waited for in vain.
func (p *patience) whole() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.spent) == 0
}

func (p *patience) spentOn(address string) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.spent, address)
}

func (p *patience) spend(address string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.spent, address) {
		p.spent = append(p.spent, address)
	}
}
