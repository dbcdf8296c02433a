// Package judge says whether a run of the fault campaign kept mailgate's promises. It does not know how a run is
// made. It gets records: the answers to the callers, what the relays received, the mailboxes afterwards, and what
// the programs logged. It finds what must not be, by pure functions of those records.
//
// The times are Unix milliseconds of one clock, that of the program that made the records.
package judge

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// Run is the record of one run.
type Run struct {
	Tiers   []throttle.Tier // of every mailbox, all far longer than a run
	Action  throttle.Tier   // of every subject
	Guesses throttle.Tier   // of every mailbox, the first to be full
	Nodes   int
	Terms   Terms
	Faults  []Span // each from before it was injected until all nodes were healthy again
	Held    []Span // the same faults, each from when it was complete until its repair
	// Strained says that the machine was overloaded: a store that did not answer in time is
	// no violation then.
	Strained bool

	Calls  []Call
	Mails  []Mail
	Finals []Final
}

// Terms are what a fault may do to the mailboxes and subjects that it touches.
type Terms struct {
	// Alone says that nodes may decide alone: a mailbox that is requested meanwhile may be sent its
	// limit by each node.
	Alone bool
	// Unknown is for how many milliseconds after the fault begins nodes may not know that the
	// store is away, and refuse.
	Unknown int64
	// Forgets says that the store may forget what it has answered.
	Forgets bool
	// Quiet says that callers must not notice: there is no 5xx and nothing degraded.
	Quiet bool
	// ClockSet says that a clock was set, so that the lease of a key in flight may end early:
	// a retry meanwhile may be answered that the outcome is unknown.
	ClockSet bool
	// Gone says that a node may not be reached: some calls have no answer.
	Gone bool
	// Refuses says that nothing is admitted and no code is right while the fault is held.
	Refuses bool
	// Fails are the kinds of answers that the fault may cause: those of 5xx, and
	// recipient-rejected where a relay refuses emails for good.
	Fails []string
}

func (t *Terms) mayFail(kind string) bool { return slices.Contains(t.Fails, kind) }

// Span is a stretch of time, both ends in it.
type Span struct{ From, To int64 }

// meets reports whether two spans have a moment in common.
func (s Span) meets(other Span) bool { return s.From <= other.To && other.From <= s.To }

// Purpose is what a call asked for.
type Purpose int

// The purposes.
const (
	Send Purpose = iota
	Look
	Verify
	Take
	Release
	Suppress
	Lift
)

// Call is one request and its answer.
type Call struct {
	For     Purpose
	Node    int
	Span    Span   // from the request's first byte to the answer's last
	Subject string // the mailbox, or the subject of an action
	Key     string // the Idempotency-Key, if there was one
	Code    string // that of a Verify
	Right   bool   // the code of a Verify is one that was mailed to this mailbox

	Status   int // 0 if there was no answer
	Kind     string
	ID       string // of a Release that of the take which it refunds
	Released bool   // the answer to a Release: there was such a take
	Degraded bool
	Clock    int64  // server_time; 0 if the answer does not say it, nor the next two
	Limit    string // the tier that has to be waited for
	Wait     int64
	Replayed bool   // the answer, and all it says, is that of an earlier call; of an email, that it was sent before
	Door     bool   // an email by SMTP: its ID is its Message-ID, and the answer says no clock and not who decided
	Body     string // kept where there is a Key
}

// The kinds of answers that more than one rule looks at.
const (
	quotaExceeded     = "quota-exceeded"
	storeUnavailable  = "store-unavailable"
	recipientRejected = "recipient-rejected"
	// Suppressed is the kind of an answer to a send to who is on the suppression list.
	Suppressed = "recipient-suppressed"
)

// What may come of an email by SMTP only.
const (
	Lost      = "lost"       // the caller closed the connection in place of reading the reply to the text; Status 0
	Abandoned = "abandoned"  // the caller closed it before
	StillSent = "still-sent" // the email before it is still on its way
)

// NotAsked is the Kind of a call with Status 0 that certainly did not reach the node.
const NotAsked = "not-asked"

// charged reports whether the answer to a Send or Take says that it used quota.
func (c *Call) charged() bool {
	return c.Status == 200 || c.Status == 504 || c.Kind == recipientRejected
}

// lost reports whether it is unknown what a call has done.
func (c *Call) lost() bool { return c.Status == 0 && c.Kind != NotAsked }

// mayCount reports whether a call may have used quota, or a guess, if only for a while.
func (c *Call) mayCount() bool {
	switch c.For {
	case Send, Take:
		return c.charged() || c.lost() || c.Status == 503 || c.Kind == Abandoned || c.Kind == StillSent
	case Verify:
		return c.Kind != NotAsked && c.Kind != quotaExceeded
	}
	return false
}

// mayBeAlone reports whether the node may have decided alone: its answer says so, there was none, or it is one
// that never says it, as those about codes and by SMTP.
func (c *Call) mayBeAlone() bool {
	return c.Degraded || c.Status == 0 || c.Status >= 500 || c.For == Verify || c.Door
}

// decidedAlone reports whether a node that cannot ask the store answers such a call by its own
// records. What another node did with a key or mailed as a code it does not know.
func (c *Call) decidedAlone() bool {
	return c.Key == "" && (c.For == Send || c.For == Take || c.For == Look)
}

// admits reports whether the answer admits a send or take, or says that a code is right.
func (c *Call) admits() bool {
	return c.Status == 200 && !c.Replayed && (c.For == Send || c.For == Take || c.For == Verify)
}

// Mail is an email that a relay received whole.
type Mail struct {
	At      int64
	Mailbox string
	ID      string
	Dated   int64  // when it was written, as it says
	Code    string // that which mailgate made for it; "" if the caller did
	Refused bool   // the relay did not accept it
}

// Final is the state of a mailbox, or of the subject of an action, when all was over.
type Final struct {
	For     Purpose // Send or Take: what is counted
	Subject string
	Span    Span     // of the call that asked
	Used    []int    // of each tier
	IDs     []string // of a mailbox's sends on record
}

// Violation is a promise that was not kept.
type Violation struct {
	Rule    string // which promise
	What    string
	Subject string // the mailbox or subject, if it is about one: see [Run.Story]
}
