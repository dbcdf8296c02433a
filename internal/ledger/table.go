package ledger

import (
	"errors"

	"github.com/mailgate/mailgate/delivery"
)

// What is what became of an email, of a check of a code, of an action or of a mailbox: a row of the table.
type What struct {
	Word string // in metrics, in logs and for operators

	Kind    delivery.Kind // of a send that was not accepted
	Charged bool          // the send stays charged, so the answer has the limits
	Problem string        // the end of the type of the problem over HTTP; "" for a success
	Detail  string        // of the problem, in place of that of its type; of a change, if the storage failed
	Retry   int64         // milliseconds to wait if no better time is known
	SMTP    Reply

	Event string // the type of the event; "" for none

	counted counter
	by      labels // what refused it
	hour    hour
}

// Reply is a reply to an SMTP client.
type Reply struct {
	Code     int
	Enhanced string
	Text     string
}

// counter says which metric counts an outcome.
type counter int8

const (
	uncounted counter = iota
	sends
	codes
	actions
	resets
)

// labels says which labels the metric of sends has.
type labels int8

const (
	none labels = iota
	byRule
	byLimit // of a rule
)

// hour says how the chart of the last hour counts an outcome.
type hour int8

const (
	apart hour = iota
	sentOne
	refusedOne
	failedOne

	chartLines = iota - 1
)

// What became of a send.
var (
	Sent        = &What{Word: "sent", Event: "email.sent", SMTP: Reply{250, "2.0.0", "accepted by the relay"}, counted: sends, hour: sentOne}
	Replayed    = &What{Word: "replayed", counted: sends}
	Limited     = &What{Kind: delivery.Limited, Problem: "quota-exceeded", Event: "email.refused", SMTP: Reply{550, "5.7.1", ""}, counted: sends, by: byLimit, hour: refusedOne}
	Challenged  = &What{Word: "challenged", Problem: "challenge-required", counted: sends, by: byLimit, hour: refusedOne}
	Denied      = &What{Kind: delivery.Denied, Problem: "recipient-denied", Event: "email.refused", SMTP: Reply{550, "5.7.1", "a rule denies this recipient"}, counted: sends, by: byRule}
	Suppressed  = &What{Kind: delivery.Suppressed, Problem: "recipient-suppressed", Event: "email.refused", SMTP: Reply{550, "5.7.1", "this recipient is suppressed"}, counted: sends}
	Rejected    = &What{Kind: delivery.Rejected, Charged: true, Problem: "recipient-rejected", Event: "email.rejected", SMTP: Reply{550, "5.0.0", ""}, counted: sends, hour: failedOne}
	Unavailable = &What{Kind: delivery.Unavailable, Problem: "relay-unavailable", Retry: 10_000,
		SMTP: Reply{451, "4.4.1", "the relay is unavailable; nothing was sent"}, counted: sends, hour: failedOne}
	Deferred = &What{Kind: delivery.Deferred, Problem: "relay-unavailable", Retry: 10_000,
		Detail: "The relay deferred this recipient. Nothing was sent, and the mailbox was not charged.",
		SMTP:   Reply{451, "4.4.1", "the relay is unavailable; nothing was sent"}, counted: sends, hour: failedOne}
	Busy    = &What{Kind: delivery.Busy, Problem: "busy", Retry: soon, SMTP: Reply{451, "4.3.2", "too many emails are waiting; nothing was sent"}, counted: sends, hour: failedOne}
	Storage = &What{Kind: delivery.Storage, Problem: "store-unavailable", Retry: soon, Detail: "The storage cannot be read or written. Nothing was sent.",
		SMTP: Reply{451, "4.3.0", "the records are unavailable; nothing was sent"}, counted: sends, hour: failedOne}
	InFlight = &What{Kind: delivery.InFlight, Problem: "idempotency-in-flight", Retry: soon,
		SMTP: Reply{451, "4.3.2", "this email is being sent on another connection"}, counted: sends}
	Mismatch = &What{Kind: delivery.Mismatch, Problem: "idempotency-mismatch", SMTP: Reply{554, "5.4.0", "another email was sent as this one"}, counted: sends}
	Unknown  = &What{Kind: delivery.Unknown, Charged: true, Problem: "delivery-unknown",
		SMTP: Reply{554, "5.4.0", "the relay did not confirm the email; it may arrive, and must not be sent again"}, counted: sends, hour: failedOne}
	Failed = &What{Kind: delivery.Failed, Problem: "internal", SMTP: Reply{451, "4.3.0", "internal error; nothing was sent"}, counted: sends, hour: failedOne}

	Abandoned = &What{Word: "abandoned"} // the SMTP client did not finish the email
	Repeated  = &What{Word: "repeated"}  // it was handed over before
)

// soon is the wait of what may be over in a moment, in milliseconds.
const soon = 1000

// What became of a check of a code or a key.
var (
	Correct   = &What{Word: "correct", Event: "email.verified", counted: codes}
	Reported  = &What{Word: "reported", counted: codes}
	Incorrect = &What{Word: "incorrect", Problem: "code-incorrect", counted: codes}
	Expired   = &What{Word: "expired", Problem: "code-expired", counted: codes}
	Spent     = &What{Word: "spent", Problem: "quota-exceeded", counted: codes}
	Unchecked = &What{Word: "failed", Problem: "store-unavailable", counted: codes}
	WrongKey  = &What{Word: "wrong-key", SMTP: Reply{535, "5.7.8", "the user must be the name of an API key, and the password its secret"}}
)

// What became of an action. One that a limit refuses is Limited, in the word.
var (
	Taken    = &What{Word: "taken", counted: actions}
	Released = &What{Word: "released", counted: actions}
	Refused  = &What{Word: string(delivery.Limited), Problem: "quota-exceeded", counted: actions, by: byLimit}
	Untaken  = &What{Word: string(delivery.Storage), Problem: "store-unavailable", counted: actions}
)

// What became of a mailbox or a limit.
var (
	MailboxReset = &What{Word: "mailbox reset", Detail: notReset, Event: "email.reset", counted: resets}
	RuleReset    = &What{Word: "rule reset", Detail: notReset, counted: resets}
	ActionReset  = &What{Word: "action reset", Detail: notReset, counted: resets}
	Suppression  = &What{Word: "recipient suppressed", Detail: notChanged, Event: "email.suppressed"}
	Unsuppressed = &What{Word: "suppression removed", Detail: notChanged}
	Bounced      = &What{Word: "bounced", Event: "email.bounced"}
	Reread       = &What{Word: "bounced"} // reported before, or without a proof
)

// A reset has several steps, so a part of it may be done when the storage fails.
const (
	notReset   = "The reset may be incomplete. Repeat it when the storage is available again; a second reset does no harm."
	notChanged = "The suppression list may be unchanged. Repeat the request when the storage is available again."
)

// Table has all rows.
var Table = []*What{
	Sent, Replayed, Limited, Challenged, Denied, Suppressed, Rejected, Unavailable, Deferred, Busy, Storage, InFlight, Mismatch, Unknown, Failed, Abandoned, Repeated,
	Correct, Reported, Incorrect, Expired, Spent, Unchecked, WrongKey, Taken, Released, Refused, Untaken,
	MailboxReset, RuleReset, ActionReset, Suppression, Unsuppressed, Bounced, Reread,
}

var ofKind = func() map[delivery.Kind]*What {
	all := map[delivery.Kind]*What{}
	for _, what := range Table {
		if what.Kind != "" {
			what.Word, all[what.Kind] = string(what.Kind), what
		}
	}
	return all
}()

// Of returns the row of an error of package delivery. Any other error is Failed.
func Of(err error) *What {
	if e, ok := errors.AsType[*delivery.Error](err); ok {
		return ofKind[e.Kind]
	}
	return Failed
}
