package api

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/mailgate/mailgate/delivery"
)

// A caller is what the requests under one key's name hold, so that none holds all there is.
type caller struct {
	share                     // its requests under way
	deciding    chan struct{} // one entry for each of them that is being decided
	connections atomic.Int64  // on which this key was the last
}

// newCallers makes one for each name of an application's keys.
func newCallers(keys Keys, most int) map[string]*caller {
	all := map[string]*caller{}
	for _, k := range keys.keys {
		all[k.name] = newCaller(most)
	}
	return all
}

func newCaller(most int) *caller {
	return &caller{share: share{most: int64(most)}, deciding: make(chan struct{}, decidingPerProcessor*runtime.GOMAXPROCS(0))}
}

// decidingPerProcessor is how many requests of a caller each processor decides at once. The others
// wait for them, not for a processor, which other callers find free.
const decidingPerProcessor = 8

// enter notes whose key has come through a connection, and refuses a request of one that has too
// many under way. It waits while as many are being decided as may be. The caller that is let in
// leaves; it is nil where no key was asked for.
func (s *Server) enter(ctx context.Context, r *route, c *call, on *conn) (*caller, error) {
	if c.key == "" {
		return nil, s.enterKeyless(r, on)
	}
	who := s.operators
	if r.keys == applications {
		who = s.callers[c.key]
	}
	on.show(who)
	if !who.take() {
		return nil, s.tooMany(r)
	}
	select {
	case who.deciding <- struct{}{}:
		c.deciding = who.deciding
		return who, nil
	case <-ctx.Done():
		who.leave()
		return nil, s.tooMany(r)
	}
}

func (s *Server) tooMany(r *route) *problem {
	p := &problem{kind: busy, retryAfter: busyRetry, detail: tooManyAtOnce}
	if r.method+" "+r.path == sendRoute { // it does not come to where the others are counted
		s.metrics.sent(string(delivery.Busy))
	}
	return p
}

// decided lets the caller's next request be decided, while this one waits for a relay or its turn.
func (c *call) decided() {
	if c.deciding != nil {
		<-c.deciding
		c.deciding = nil
	}
}

func (c *caller) leave() {
	if c != nil {
		c.share.leave()
	}
}

const tooManyAtOnce = "Too many requests with this key are under way. Nothing was done for this one, and nothing charged."
