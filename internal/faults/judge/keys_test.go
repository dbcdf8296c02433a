package judge_test

import (
	"testing"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// retried plants a key that was done at some time, and asked for again after the fault: by
// another node, which does not answer 200.
func retried(run *judge.Run, at int64, status int, kind string) *judge.Call {
	mailed(run, "retried", at, 1)
	run.Calls[len(run.Calls)-1].Key = "t"
	run.Calls = append(run.Calls, judge.Call{For: judge.Send, Node: 1, Subject: "retried", Key: "t",
		Span: judge.Span{From: end + 200, To: end + 205}, Status: status, Kind: kind})
	return &run.Calls[len(run.Calls)-1]
}

// own makes a call one of the node that did its key, at some time.
func own(call *judge.Call, at int64) { call.Node, call.Span = 0, judge.Span{From: at, To: at + 5} }

// doneTwice plants a key that two nodes did alone, and what the first answers to a retry: the other's answer.
func doneTwice(r *judge.Run, at int64) {
	r.Terms.Alone = true
	for i, body := range []string{"own", "other"} {
		id := "done-" + body
		r.Calls = append(r.Calls, judge.Call{For: judge.Send, Node: i, Subject: "twice", Key: "w", Degraded: true, Body: body,
			Span: judge.Span{From: begin + 20, To: begin + 30}, Status: 200, ID: id})
		r.Mails = append(r.Mails, judge.Mail{At: begin + 25, Mailbox: "twice", ID: id})
	}
	r.Calls = append(r.Calls, judge.Call{For: judge.Send, Subject: "twice", Key: "w", Degraded: true, Replayed: true, Body: "other",
		Span: judge.Span{From: at, To: at + 5}, Status: 200, ID: "done-other"})
}

// Of the key "k" the answers are calls 3 and 4, both in the fault.
func TestJudge_PlantedRetries_IsFound(t *testing.T) {
	const inFlight = "idempotency-in-flight"
	finds(t, []planted{
		{"a key that was done, and is denied", func(r *judge.Run) { retried(r, end+100, 429, "quota-exceeded") }, "keys"},
		{"a key that is in flight while it is done", func(r *judge.Run) {
			retried(r, end+100, 409, inFlight).Span.From = end + 105
		}, ""},
		{"a key with two mails, one of a call that was not answered", func(r *judge.Run) {
			retried(r, begin+9, 0, "").Span = judge.Span{From: begin + 9, To: begin + 14}
			r.Mails = append(r.Mails, judge.Mail{At: begin + 12, Mailbox: "retried", ID: "second"})
		}, "key-mails"},
		{"a key that was done when the store was lost", func(r *judge.Run) { retried(r, begin+9, 409, inFlight) }, ""},
		{"a key that a node did alone, and has told the others of", func(r *judge.Run) {
			r.Terms.Alone = true
			retried(r, begin+9, 409, inFlight)
		}, "keys"},
		{"a key that another has done, of a node alone", func(r *judge.Run) {
			r.Terms.Alone = true
			retried(r, begin+9, 409, inFlight).Span = judge.Span{From: begin + 200, To: begin + 205}
		}, ""},
		{"a key that a node has done, and could not tell a store that hangs", func(r *judge.Run) {
			r.Terms.Alone, r.Terms.Unknown = true, 5_000
			own(retried(r, begin, 409, inFlight), begin+3_000)
		}, ""},
		{"a key that a node has done, and could have kept since", func(r *judge.Run) {
			r.Terms.Alone, r.Terms.Unknown = true, 5_000
			own(retried(r, begin, 409, inFlight), begin+6_000)
		}, "keys"},
		{"a key that two nodes have done, of one of them with the store back", func(r *judge.Run) { doneTwice(r, end-900) }, ""},
		{"a key that two nodes have done, of one of them alone", func(r *judge.Run) { doneTwice(r, end-1_100) }, "keys"},
	})
}
