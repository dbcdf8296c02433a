package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/prober"
)

// Patience returns a context for calls that belong together, such as the steps of one
// request. Together they wait for a server in vain hardly longer than one would.
//
// When a call was not answered in time, the server is probed, and the next call waits for that for
// a quarter of the time; [LongestWait] is both. Later calls on its keys fail at once, with
// ErrNotAsked, until it has answered a probe or a while has passed. Other servers are asked as
// before, and so is this one by other requests, since one lost answer tells little. A server whose
// replicas do not confirm has answered, and goes on deciding.
func Patience(ctx context.Context) context.Context { return &patience{Context: ctx} }

// LongestWait is how long the calls under one Patience wait for a server in vain, where one of
// them may take so long. Whoever gives them less does not learn that the server is away.
func LongestWait(timeout time.Duration) time.Duration { return timeout + opinionTime(timeout) }

func opinionTime(timeout time.Duration) time.Duration { return timeout / 4 }

// patience remembers which servers a request has waited for in vain.
type patience struct {
	context.Context

	mu    sync.Mutex
	waits []wait // one for a server; mostly none, and never many
}

// A wait is one in vain.
type wait struct {
	address string
	ended   time.Time
	opinion <-chan struct{} // closed when the server was asked once more
}

type patienceKey struct{}

// Value implements context.Context.
func (p *patience) Value(key any) any {
	if key == (patienceKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// patienceOf is the patience of the request that a context belongs to. A context of no request
// has none, nil, and waits every time.
func patienceOf(ctx context.Context) *patience {
	p, _ := ctx.Value(patienceKey{}).(*patience)
	return p
}

// last is the last wait for a server.
func (p *patience) last(address string) (w wait, found bool) {
	if p == nil {
		return w, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waits {
		if w.address == address {
			return w, true
		}
	}
	return w, false
}

// spend notes a wait, in place of the last for that server.
func (p *patience) spend(w wait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = append(slices.DeleteFunc(p.waits, func(old wait) bool { return old.address == w.address }), w)
}

// asks reports whether a request is to ask a server, which it may have waited for in vain.
func (s *Store) asks(asker context.Context, address string, p *prober.Prober) bool {
	w, found := patienceOf(asker).last(address)
	if !found || time.Since(w.ended) > s.timeout+trialEvery {
		return true
	}
	moment := time.NewTimer(time.Until(w.ended.Add(opinionTime(s.timeout))))
	defer moment.Stop()
	select {
	case <-w.opinion:
	case <-moment.C:
	case <-asker.Done():
	}
	return p.State() == prober.Here
}
