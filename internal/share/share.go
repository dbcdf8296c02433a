// Package share bounds the requests in progress, so that no caller uses everything.
package share

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Share bounds how many requests of one kind are in progress.
type Share struct {
	Most  int64 // 0 for any number
	inUse atomic.Int64
}

// Take reports whether there was room for one more request, which then has to Leave.
func (s *Share) Take() bool {
	if n := s.inUse.Add(1); s.Most > 0 && n > s.Most {
		s.inUse.Add(-1)
		return false
	}
	return true
}

// Leave makes room for another request.
func (s *Share) Leave() { s.inUse.Add(-1) }

// Caller is what the requests under one key's name use.
type Caller struct {
	share    Share
	deciding chan struct{} // one entry for each request that is being decided
}

// NewCaller makes a caller that may have so many requests in progress; 0 for any number.
func NewCaller(most int) *Caller {
	return &Caller{share: Share{Most: int64(most)}, deciding: make(chan struct{}, decidingPerProcessor*runtime.GOMAXPROCS(0))}
}

// decidingPerProcessor is how many requests of a caller each processor decides at once. The
// others wait for them, not for a processor, which is free for other callers.
const decidingPerProcessor = 32

// Held is what one request holds of its caller. The zero Held holds nothing.
type Held struct {
	caller   *Caller
	deciding bool
}

// Enter reports whether the caller has room for one more request. It waits while too many of its
// requests are being decided, until ctx ends. Leave follows in any case.
func (h *Held) Enter(ctx context.Context, who *Caller) bool {
	if !who.share.Take() {
		return false
	}
	h.caller = who
	select {
	case who.deciding <- struct{}{}:
		h.deciding = true
	default: // the channel of ctx is made where it is waited for
		select {
		case who.deciding <- struct{}{}:
			h.deciding = true
		case <-ctx.Done():
		}
	}
	return h.deciding
}

// Decided lets the caller's next request be decided, while this one waits for a relay or in a queue.
func (h *Held) Decided() {
	if h.deciding {
		<-h.caller.deciding
		h.deciding = false
	}
}

// Leave releases all that the request holds.
func (h *Held) Leave() {
	h.Decided()
	if h.caller != nil {
		h.caller.share.Leave()
		h.caller = nil
	}
}
