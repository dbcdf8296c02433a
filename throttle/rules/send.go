package rules

import (
	"cmp"
	"net/netip"
)

// Send is what rules can know of an email that is to be sent. The mailbox is required. A rule
// does not apply to a send whose trait is unknown.
type Send struct {
	Mailbox  string     // the recipient, as one text for all its aliases
	Client   netip.Addr // the visitor who requested it
	Caller   string     // the name of the API key that requested it
	Template string
	Purpose  string // of the code in it
	// Solved is the hash of the token of a solved challenge, empty without one. The send spends the token.
	Solved string
	// Unverifiable is an email of which it is never known whether its code was right, as at the SMTP door. No budget
	// counts it.
	Unverifiable bool
}

// Caller returns what rules count the requests of an API key as. Without keys all have one name.
func Caller(key string) string { return cmp.Or(key, "local") }
