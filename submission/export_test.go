package submission

import "time"

// Times are those of the product, and its memory for texts.
type Times struct {
	SignIn, Idle, Write, Arrival, Begin, Answer time.Duration

	Texts int64
}

// Hurry changes the times before the server runs.
func (s *Server) Hurry(change func(*Times)) {
	t := Times(s.times)
	change(&t)
	s.times = times(t)
}

// Texts is how many octets of texts are held.
func (s *Server) Texts() int64 { return s.texts.Load() }
