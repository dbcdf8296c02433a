package delivery

import (
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Live is what all doors work with that can be replaced while they serve, all at once.
type Live struct {
	// Rules admit sends.
	Rules *rules.Set
	// Actions are the limiters of POST /actions/{action}/take and the other routes of actions, by
	// the action's name.
	Actions map[string]*throttle.Limiter
	// Composer makes the emails.
	Composer *message.Composer
}

// Live returns what is in force. A request keeps what it began with.
func (s *Service) Live() *Live { return s.live.Load() }

// Reload replaces what is in force.
func (s *Service) Reload(next Live) { s.live.Store(&next) }
