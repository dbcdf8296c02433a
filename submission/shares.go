package submission

import (
	"math/rand/v2"
	"net/netip"
	"slices"
)

// enter adds a connection, and reports whether there is room for it. Those that have not signed in hold half of all at
// most. To make room for the next, a random one of the address that has the most is closed, so that a flood without keys
// does not keep others out. Closing the oldest instead would let a flood from many addresses close each before it signs in.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unknown []*conn
	for one := range s.conns {
		if !one.signedIn {
			unknown = append(unknown, one)
		}
	}
	switch full := len(s.conns) >= s.MaxConnections || len(unknown) >= half(s.MaxConnections); {
	case s.ended, full && len(unknown) == 0:
		return false
	case full:
		victim := oneOfMost(unknown)
		delete(s.conns, victim)
		victim.stop(crowded)
	}
	s.conns[c] = true
	s.serving.Add(1)
	return true
}

func half(n int) int { return max(1, n/2) }

// oneOfMost draws a connection of the addresses that have the most.
func oneOfMost(all []*conn) *conn {
	count, most := map[netip.Addr]int{}, 0
	for _, c := range all {
		count[c.from]++
		most = max(most, count[c.from])
	}
	drawn := slices.DeleteFunc(all, func(c *conn) bool { return count[c.from] < most })
	return drawn[rand.IntN(len(drawn))]
}

// signIn moves a connection to the share of a key, which is half of all, so that no key keeps the others out. It
// reports whether there is room.
func (s *Server) signIn(c *conn, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for one := range s.conns {
		if one != c && one.signedIn && one.key == key {
			n++
		}
	}
	if !s.Keys.IsZero() && n >= half(s.MaxConnections) {
		return false
	}
	c.key, c.signedIn = key, true
	return true
}

// signOut takes a connection out of the share of its key.
func (s *Server) signOut(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.key, c.signedIn = "", false
}

// leave removes a connection that has ended.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.serving.Done()
}

// Connections returns how many are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
