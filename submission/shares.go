package submission

import (
	"net/netip"
	"slices"
)

// shares are the open connections. Those that have not signed in hold half of them at most, and the
// oldest one of the address that has the most makes room for the next, so that a flood without keys
// does not keep others out. A key has half of all, so that none keeps the others out.
type shares struct {
	most     int
	open     int
	unknown  []*conn        // have not signed in; the oldest first
	byKey    map[string]int // those that have
	stopping bool
	all      map[*conn]bool
}

func newShares(most int) shares {
	return shares{most: most, byKey: map[string]int{}, all: map[*conn]bool{}}
}

func half(n int) int { return max(1, n/2) }

// enter adds a connection, and reports whether there is room for it.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.conns
	if n.stopping {
		return false
	}
	if n.open >= n.most || len(n.unknown) >= half(n.most) {
		if len(n.unknown) == 0 {
			return false
		}
		victim := n.victim()
		s.remove(victim)
		victim.cut()
	}
	n.open++
	n.all[c] = true
	n.unknown = append(n.unknown, c)
	s.serving.Add(1)
	return true
}

// Connections returns how many are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns.open
}

// victim is the oldest connection without a key of the address that has the most of them.
func (n *shares) victim() *conn {
	count := map[netip.Addr]int{}
	for _, c := range n.unknown {
		count[c.from]++
	}
	worst := n.unknown[0]
	for _, c := range n.unknown {
		if count[c.from] > count[worst.from] {
			worst = c
		}
	}
	return worst
}

// signIn moves a connection to the share of its key, and reports whether there is room.
func (s *Server) signIn(c *conn, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.conns
	i := slices.Index(n.unknown, c)
	if i < 0 || !s.Keys.IsZero() && n.byKey[key] >= half(n.most) {
		return i < 0 && c.key != ""
	}
	n.unknown = slices.Delete(n.unknown, i, i+1)
	n.byKey[key]++
	c.key = key
	return true
}

// leave removes a connection that has ended.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
	s.serving.Done()
}

func (s *Server) remove(c *conn) {
	n := &s.conns
	if !n.all[c] {
		return
	}
	delete(n.all, c)
	n.open--
	if c.key != "" {
		if n.byKey[c.key]--; n.byKey[c.key] == 0 {
			delete(n.byKey, c.key)
		}
	}
	n.unknown = slices.DeleteFunc(n.unknown, func(other *conn) bool { return other == c })
}
