package mailer

import (
	"cmp"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
)

// Breaker says when a failing relay is left alone. After Failures failures in
// a row nobody asks it for Cooldown; then one mail is tried on it, while the
// others go on as before. If that one fails, the rest is twice as long, up to
// MaxCooldown; if it is answered, the relay is back.
//
// A failure is a relay that does not do its work: unreachable, silent, broken
// off, or saying 4xx to everybody. A refused recipient is none, nor is a 4xx,
// or a refusal of us, to one recipient or one mail, nor a mail greater than it
// takes, nor whatever becomes of RCPT once MAIL was answered, be it silence, nor
// a mail that came to the relay so late that its own time ended first: otherwise
// whoever may name a recipient could stop the mail of all. Nor is a 4xx to one
// connection more than it takes at once.
//
// Silence at DATA or after the final dot is a failure, whoever the recipient is. A
// relay that hands a mail on before it answers lets a recipient's server bring it
// about, but that cannot be told from a relay that hangs.
type Breaker struct {
	Failures    int           // 5 if zero
	Cooldown    time.Duration // 5 s if zero
	MaxCooldown time.Duration // 2 min if zero, but at least Cooldown
}

func (b Breaker) withDefaults() Breaker {
	b.Failures = cmp.Or(b.Failures, 5)
	b.Cooldown = cmp.Or(b.Cooldown, 5*time.Second)
	b.MaxCooldown = max(cmp.Or(b.MaxCooldown, 2*time.Minute), b.Cooldown)
	return b
}

// circuit puts the breaker to work on one relay.
func (b Breaker) circuit(now func() int64, changed func(open bool)) *breaker.Circuit {
	return breaker.NewCircuit(breaker.Rule(b), now, changed)
}
