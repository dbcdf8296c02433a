package judge_test

import (
	"testing"

	"github.com/mailgate/mailgate/faults/judge"
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
	})
}
