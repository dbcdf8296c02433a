// Package judge says whether a run of the fault campaign kept mailgate's promises. It
// knows nothing of how a run is made: it is handed what the callers were answered, what
// the relays received, how the mailboxes stood afterwards and what the programs logged,
// and finds what cannot be. Everything in it is a pure function of those records.
//
// The times are Unix milliseconds of one clock, that of whoever made the records.
package judge

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// A Run is what is on record of one run.
type Run struct {
	Tiers   []throttle.Tier // of every mailbox, all far longer than a run
	Action  throttle.Tier   // of every subject
	Guesses throttle.Tier   // of every mailbox, the first to be full
	Nodes   int
	Terms   Terms
	Faults  []Span // each from before it struck until all nodes were well again
	// Held are the faults, each from when it had struck until it was mended.
	Held []Span
	// Strained says that the machine had no time for the run: that a store did not answer
	// in time is nobody's fault then.
	Strained bool

	Calls     []Call
	Mails     []Mail
	Standings []Standing
	Subjects  []Subject
}

// Terms are what a fault is allowed to do to those it touches.
type Terms struct {
	// Alone says that nodes may have had to go on by themselves: mailboxes that were
	// asked for meanwhile may be sent so many mails by each node.
	Alone bool
	// Unknown is for how many milliseconds from when the fault began nodes may not know that the
	// store is away, and refuse.
	Unknown int64
	// Forgets says that the store may forget what it has answered.
	Forgets bool
	// Quiet says that callers are not to notice: there is no 5xx and nothing degraded.
	Quiet bool
	// Leases says that a clock was set, so that a key in flight may be thought to be left
	// behind: whoever asks again meanwhile may be told that nobody knows.
	Leases bool
	// Gone says that a node may be gone, or not be reached: some calls are not answered.
	Gone bool
	// Refuses says that no place is given and no code right while the fault is held.
	Refuses bool
	// Fails are the kinds of answers that the fault may cause: those of 5xx, and
	// recipient-rejected where a relay refuses mails for good.
	Fails []string
}

func (t *Terms) mayFail(kind string) bool { return slices.Contains(t.Fails, kind) }

// A Span is a stretch of time, both ends in it.
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
)

// A Call is one request and its answer.
type Call struct {
	For     Purpose
	Node    int
	Span    Span   // from the request's first byte to the answer's last
	Subject string // the mailbox, or the subject of an action
	Key     string // the Idempotency-Key, if there was one
	Code    string // that of a Verify
	Right   bool   // the code of a Verify is one that was mailed to this mailbox

	Status   int // 0 if nobody answered
	Kind     string
	ID       string // of a Release that of the take which it is to give back
	Released bool   // the answer to a Release: there was such a take
	Degraded bool
	Clock    int64  // server_time; 0 if the answer does not say it, and the next two
	Limit    string // the tier that has to be waited for
	Wait     int64
	Replayed bool   // the answer, and all it says, is that of an earlier call
	Body     string // kept where there is a Key
}

// The kinds of answers that more than one rule looks at.
const (
	quotaExceeded     = "quota-exceeded"
	storeUnavailable  = "store-unavailable"
	recipientRejected = "recipient-rejected"
)

// charged reports whether a call to send was answered in a way that costs a place.
func (c *Call) charged() bool {
	return c.Status == 200 || c.Status == 504 || c.Kind == recipientRejected
}

// mayCount reports whether a call may have taken a place, or a guess, if only for a while.
func (c *Call) mayCount() bool {
	switch c.For {
	case Send, Take:
		return c.charged() || c.lost() || c.Status == 503
	case Verify:
		return c.Kind != NotAsked && c.Kind != quotaExceeded
	}
	return false
}

// NotAsked is the Kind of a call with Status 0 that certainly did not reach the node.
const NotAsked = "not-asked"

// lost reports whether nobody knows what became of a call.
func (c *Call) lost() bool { return c.Status == 0 && c.Kind != NotAsked }

// mayBeAlone reports whether the node may have answered by what it knew itself: it says so,
// it had no time to say, or it does not say of codes.
func (c *Call) mayBeAlone() bool {
	return c.Degraded || c.Status == 0 || c.Status >= 500 || c.For == Verify
}

// decidedAlone reports whether a node that cannot ask the store answers such a call by
// what it knows itself. What another node may have done with a key or mailed as a code it
// does not know.
func (c *Call) decidedAlone() bool {
	return c.Key == "" && (c.For == Send || c.For == Take || c.For == Look)
}

// A Mail is one that a relay received whole.
type Mail struct {
	At      int64
	Mailbox string
	ID      string
	Dated   int64  // when it was written, as it says
	Code    string // that which mailgate made for it; "" if the caller did
	// Refused says that the relay did not take it over.
	Refused bool
}

// A Standing is how a mailbox stood when all was over: how many places were used, by
// tier, and by which admissions.
type Standing struct {
	Mailbox string
	Used    []int
	IDs     []string
}

// A Subject is how the subject of an action stood when all was over.
type Subject struct {
	Name string
	Span Span // of the look at it
	Used int
}

// A Violation is a promise that was not kept.
type Violation struct {
	Rule string // which promise
	What string
	// Subject is the mailbox, or the subject of an action, that it was not kept to, if it
	// is one: see [Run.Story].
	Subject string
}
