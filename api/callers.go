package api

import "sync/atomic"

// A caller is what the requests under one key's name hold, so that none holds all there is.
type caller struct {
	most        int64        // requests at once; 0 for any number
	underWay    atomic.Int64 // requests
	connections atomic.Int64 // on which this key was the last
}

// newCallers makes one for each name of an application's keys.
func newCallers(keys Keys, most int) map[string]*caller {
	all := map[string]*caller{}
	for _, k := range keys.keys {
		all[k.name] = &caller{most: int64(most)}
	}
	return all
}

// enter notes whose key has come through a connection, and refuses a request of one that
// has too many under way. The caller that is let in leaves; it is nil where no key was
// asked for.
func (s *Server) enter(r *route, key string, on *conn) (*caller, error) {
	if key == "" {
		return nil, nil
	}
	who := &s.operators
	if r.keys == applications {
		who = s.callers[key]
	}
	on.show(who)
	if n := who.underWay.Add(1); who.most > 0 && n > who.most {
		who.leave()
		p := &problem{kind: busy, retryAfter: busyRetry, detail: tooManyAtOnce}
		if r.method+" "+r.path == sendRoute { // it does not come to where the others are counted
			s.metrics.sent(outcomeOf(p))
		}
		return nil, p
	}
	return who, nil
}

func (c *caller) leave() {
	if c != nil {
		c.underWay.Add(-1)
	}
}

const tooManyAtOnce = "Too many requests with this key are under way. Nothing was done for this one, and nothing charged."
