package api

import (
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Live is what a Server works with that can be replaced while it serves, all at once.
type Live struct {
	// Rules admit sends.
	Rules *rules.Set
	// Actions are the limiters of POST /actions/{action}/take and the other routes of actions, by
	// the action's name.
	Actions map[string]*throttle.Limiter
	// Composer makes the emails.
	Composer *message.Composer
}

// Reload replaces what the server works with, for requests that have not begun; the others keep
// what they began with.
func (s *Server) Reload(next Live) { s.live.Store(&next) }
