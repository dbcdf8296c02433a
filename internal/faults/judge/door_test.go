package judge_test

import (
	"testing"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// submitted plants an email by SMTP to a mailbox, with its final state: the caller closed the connection after the
// text, and sent it again.
func submitted(r *judge.Run, mailbox string, at int64) (first, again *judge.Call) {
	call := judge.Call{For: judge.Send, Door: true, Subject: mailbox, ID: "m1", Span: judge.Span{From: at, To: at + 5}, Kind: judge.Lost}
	r.Calls = append(r.Calls, call, call)
	first, again = &r.Calls[len(r.Calls)-2], &r.Calls[len(r.Calls)-1]
	again.Status, again.Kind, again.Replayed, again.Span = 200, "", true, judge.Span{From: at + 10, To: at + 15}
	r.Mails = append(r.Mails, judge.Mail{At: at + 3, Mailbox: mailbox, ID: "m1"})
	r.Finals = append(r.Finals, final(mailbox, 1, "admission"))
	return first, again
}

// abandoned plants one that the caller left without a text.
func abandoned(r *judge.Run, at int64, used int, ids ...string) {
	r.Calls = append(r.Calls, judge.Call{For: judge.Send, Door: true, Subject: "left", ID: "m2",
		Span: judge.Span{From: at, To: at + 5}, Status: 499, Kind: judge.Abandoned})
	r.Finals = append(r.Finals, final("left", used, ids...))
}

// deferred plants one that the node could not send, and that is charged in the end.
func deferred(r *judge.Run, at int64) {
	abandoned(r, at, 1, "x")
	call := &r.Calls[len(r.Calls)-1]
	call.Status, call.Kind = 503, "store-unavailable"
}

func TestJudge_PlantedEmailsBySMTP_IsFound(t *testing.T) {
	finds(t, []planted{
		{"sent once, its reply lost and repeated", func(r *judge.Run) { submitted(r, "new", begin-9000) }, ""},
		{"sent twice", func(r *judge.Run) {
			submitted(r, "new", begin-9000)
			r.Mails = append(r.Mails, r.Mails[len(r.Mails)-1])
			r.Tiers[0].Limit = 2
		}, "mails"},
		{"sent twice, by two nodes alone", func(r *judge.Run) {
			submitted(r, "new", begin+9)
			r.Calls[len(r.Calls)-1].Node, r.Terms.Alone = 1, true
			r.Mails = append(r.Mails, r.Mails[len(r.Mails)-1])
		}, ""},
		{"charged twice", func(r *judge.Run) {
			submitted(r, "new", begin-9000)
			r.Finals[len(r.Finals)-1] = final("new", 2, "one", "two")
		}, "finals"},
		{"sent and not charged", func(r *judge.Run) { submitted(r, "new", begin-9000); r.Finals[len(r.Finals)-1] = final("new", 0) }, "finals"},
		{"sent and not on record", func(r *judge.Run) { submitted(r, "new", begin-9000); r.Finals[len(r.Finals)-1] = final("new", 1) }, "finals"},
		{"accepted and not sent", func(r *judge.Run) { submitted(r, "new", begin-9000); r.Mails = r.Mails[:len(r.Mails)-1] }, "mails"},
		{"one more than the limit", func(r *judge.Run) {
			_, again := submitted(r, "before", begin-3000)
			again.Replayed = false
		}, "limits"},
		{"unknown to a repeat in calm", func(r *judge.Run) {
			_, again := submitted(r, "new", begin-9000)
			again.Status, again.Kind = 504, "delivery-unknown"
		}, ""},
		{"unknown at first in calm", func(r *judge.Run) {
			first, _ := submitted(r, "new", begin-9000)
			first.Status, first.Kind = 504, "delivery-unknown"
		}, "answers"},
		{"no answer in calm", func(r *judge.Run) { first, _ := submitted(r, "new", begin-9000); first.Kind = "" }, "answers"},
		{"still being sent", func(r *judge.Run) {
			_, again := submitted(r, "new", begin-9000)
			again.Status, again.Kind = 409, judge.StillSent
		}, ""},
		{"deferred where a node must continue alone", func(r *judge.Run) {
			_, again := submitted(r, "new", begin+90)
			again.Status, again.Kind, r.Terms.Alone = 503, "store-unavailable", true
		}, "answers"},
		{"deferred as the store came back", func(r *judge.Run) {
			_, again := submitted(r, "new", end-1005)
			again.Status, again.Kind, r.Terms.Alone = 503, "store-unavailable", true
		}, ""},
		{"left and refunded", func(r *judge.Run) { abandoned(r, begin-9000, 0) }, ""},
		{"left and charged", func(r *judge.Run) { abandoned(r, begin-9000, 1, "x") }, "finals"},
		{"left and charged by a node that was killed", func(r *judge.Run) { abandoned(r, begin+9, 1, "x") }, ""},
		{"left and charged by a store that forgets, before its fault", func(r *judge.Run) { r.Terms.Forgets = true; abandoned(r, begin-9000, 1, "x") }, "finals"},
		{"deferred and charged, the refund forgotten", func(r *judge.Run) { r.Terms.Forgets = true; deferred(r, begin+9) }, ""},
		{"deferred and charged", func(r *judge.Run) { deferred(r, begin+9) }, "finals"},
		{"a wait without a cause", func(r *judge.Run) {
			r.Calls = append(r.Calls, judge.Call{For: judge.Send, Door: true, Subject: "fresh", ID: "m3", Span: judge.Span{From: end + 50, To: end + 60},
				Status: 429, Kind: "quota-exceeded", Limit: "a", Wait: 500_000})
		}, "waits"},
		{"a wait for the email before", func(r *judge.Run) {
			r.Calls = append(r.Calls, judge.Call{For: judge.Send, Door: true, Subject: "before", ID: "m3", Span: judge.Span{From: end + 50, To: end + 60},
				Status: 429, Kind: "quota-exceeded", Limit: "a", Wait: begin - 5000 + 600_000 - end - 45})
		}, ""},
	})
}
