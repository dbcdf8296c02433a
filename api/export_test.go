package api

import (
	"cmp"
	"time"
)

// SetTimeouts changes how long a server waits for a request to arrive, and for the next one on a
// kept connection; 0 changes nothing. It is called before Serve.
func (s *Server) SetTimeouts(read, idle time.Duration) {
	server := s.main.App.Server()
	server.ReadTimeout = cmp.Or(read, server.ReadTimeout)
	server.IdleTimeout = cmp.Or(idle, server.IdleTimeout)
}
