package client

import "fmt"

// A Wait is the error where a limit is reached. Nothing was done and nothing was counted,
// and asking has not made the wait longer.
//
// Rule, Limit and Wait say which limit of which rule refuses longest, and for how long.
// The rule is "mailbox" for the mailbox's own limits, "guesses" for those of
// [Client.VerifyCode], "lookups" for those of a caller who looks too much up, the action's
// name for an action, or else one of the operator's.
type Wait struct {
	Standing
	// Violated names all limits that are full; of a send those of rules other than the
	// mailbox's as rule.limit.
	Violated []string
	// Detail says it to a person, in English.
	Detail string
	// RequestID is what mailgate's log calls the request.
	RequestID string
}

// Error says which limit and how long.
func (w *Wait) Error() string {
	return fmt.Sprintf("mailgate says to wait %v: limit %s of rule %s is reached", w.Wait, word(w.Limit), word(w.Rule))
}
