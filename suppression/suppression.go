// Package suppression keeps the addresses that get no email, with the reason and until when.
//
// A hard bounce suppresses the address as it is spelled, apart from letter case: victim+tag@ bounces
// where tags are unknown, and must not lock victim@ out. All other reasons suppress the mailbox.
//
// A [List] answers from memory, which holds the whole list. Its home is a [cache.Table] on one machine.
// Several nodes share it in Redis: each learns the changes of others within a second, and decides by what
// it has while Redis is away.
package suppression

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/mailer/address"
)

// Reason says why an address gets no email.
type Reason string

// The reasons.
const (
	Complaint  Reason = "complaint"   // the recipient reported an email as spam
	Manual     Reason = "manual"      // by an operator
	HardBounce Reason = "hard-bounce" // there is no such address
	NotMe      Reason = "not-me"      // the recipient did not ask for the email
)

// Reasons are all reasons, the one that most emails must obey first.
var Reasons = [...]Reason{Complaint, Manual, HardBounce, NotMe}

const day = int64(24 * time.Hour / time.Millisecond)

// lifetimes are how long entries last, in milliseconds. All others stay until they are removed.
var lifetimes = map[Reason]int64{HardBounce: 30 * day, NotMe: 7 * day}

// Valid reports whether r is one of Reasons.
func (r Reason) Valid() bool { return slices.Contains(Reasons[:], r) }

// Subject returns what of an address is suppressed. Letter case is folded, whatever the Identity of the address, as
// providers report in lower case.
func (r Reason) Subject(of address.Address) string {
	if r == HardBounce {
		return strings.ToLower(of.String())
	}
	return strings.ToLower(of.Key())
}

// Entry is one address for one reason, and what operators see of it.
type Entry struct {
	Address string      `json:"email"` // the mailbox, or of a hard bounce the address as spelled
	Reason  Reason      `json:"reason"`
	Until   wire.Moment `json:"until"`  // 0: until it is removed
	Source  string      `json:"source"` // where it came from
	Since   wire.Moment `json:"since,omitzero"`
}

// forever is the end of an entry that stays until it is removed.
const forever = math.MaxInt64

// end is when the entry ends.
func (e *Entry) end() int64 {
	if e.Until == 0 {
		return forever
	}
	return int64(e.Until)
}

// field names an entry in its home. An address has no blank.
func field(subject string, r Reason) string { return subject + " " + string(r) }

// value returns what the home keeps under the field, nothing for one that was removed.
func (e *Entry) value() []byte {
	if e.Until == ended {
		return nil
	}
	return []byte(strconv.FormatInt(int64(e.Until), 10) + " " + strconv.FormatInt(int64(e.Since), 10) + " " + e.Source)
}

// unshared begins the value of an entry that was written without Redis. ParseInt takes it for a sign.
const unshared = '+'

var errEntry = errors.New("an entry of the suppression list cannot be read")

// ended is the end of an entry that was removed.
const ended = 1

// parse reads an entry. An empty value is one that was removed.
func parse(field, value string) (e Entry, err error) {
	subject, reason, _ := strings.Cut(field, " ")
	e = Entry{Address: subject, Reason: Reason(reason), Until: ended}
	if !e.Reason.Valid() {
		return e, errEntry
	}
	if value == "" {
		return e, nil
	}
	until, rest, _ := strings.Cut(value, " ")
	since, source, _ := strings.Cut(rest, " ")
	end, err := strconv.ParseInt(until, 10, 64)
	begin, bad := strconv.ParseInt(since, 10, 64)
	if err != nil || bad != nil {
		return e, errEntry
	}
	e.Source, e.Since, e.Until = source, wire.Moment(begin), wire.Moment(end)
	return e, nil
}
