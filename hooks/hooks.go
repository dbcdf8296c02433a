// Package hooks reads the calls of other systems. Auth systems call a URL in place of sending an email, and email
// providers report bounces and complaints. A file has one system.
//
// A hook says whether a call is genuine, what it asks for or reports, and what to answer in that system's
// terms. Package api, whose listener brings the calls, has package delivery send the emails as for
// POST /send-code, and package bounce apply the events. A call chooses no template file and no header. The only host that
// it chooses is that of redirect_to, in templates of the operator's own that show it.
package hooks

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/suppression/bounce"
)

// Hook takes the calls of one system, which come to POST /hooks/ and its name.
type Hook interface {
	// Name is also the hook's door in metrics, and its caller in logs and rules.
	Name() string
	// Genuine returns nil for a call from the system, and otherwise ErrForged or ErrLater. It waits for nothing, and
	// leaves in the Call what it has read.
	Genuine(*Call) error
}

// Sender is the hook of an auth system.
type Sender interface {
	Hook
	// Emails returns the emails that a genuine call asks for, all or none of which are charged. A system that tries
	// again, with the same body, waits until a time: by then the emails have to be on their way. Zero is for one that
	// calls once. An error is for the log and the system, and holds no address.
	Emails(*Call) (emails []delivery.Send, by time.Time, err error)
	// Answer makes the answer to a call: of 200 if the emails were sent or may have been, or another HTTP
	// status and words for the visitor.
	Answer(status int, words string) (code int, contentType string, body []byte)
}

// Reporter is the hook of an email provider.
type Reporter interface {
	Hook
	// Events returns the events of a genuine call, and answers a provider that asks whether the hook is wanted. The
	// only error is ErrLater.
	Events(context.Context, *Call) ([]bounce.Event, error)
	// Status returns the provider's own status for one of mailgate's: that which ends its retries for 401, and that which
	// makes it repeat the call for 503.
	Status(status int) int
}

// MaxBody returns how many bytes a call may have: several times what the longest of an auth system needs, and more for
// providers, which report events in batches.
func MaxBody(of Hook) int {
	if _, reports := of.(Reporter); reports {
		return 1 << 20
	}
	return 64 << 10
}

// Call is one call of a system.
type Call struct {
	Header func(name string) string
	Body   []byte
	// Now is when it arrived, and Began the same by the clock of deadlines.
	Now, Began time.Time
	Identity   address.Identity

	parsed any // by Genuine, for the reading
}

var (
	// ErrForged means that a call is not from the system.
	ErrForged = errors.New("the call is not from the system")
	// ErrLater means that a call is to be repeated, as the system has not answered a question about it.
	ErrLater = errors.New("the call is to be repeated")
)

// genuineIf returns ErrForged where a call is not genuine.
func genuineIf(ok bool) error {
	if ok {
		return nil
	}
	return ErrForged
}

// Names lists the names of hooks.
func Names[H Hook](all []H) (names []string) {
	for _, hook := range all {
		names = append(names, hook.Name())
	}
	return names
}

// authorized proves the origin by a header Authorization, in a time that says nothing about it.
func authorized(want string) func(*Call) error {
	wanted := sha256.Sum256([]byte(want))
	return func(c *Call) error {
		given := sha256.Sum256([]byte(c.Header("Authorization")))
		return genuineIf(hmac.Equal(given[:], wanted[:]))
	}
}
