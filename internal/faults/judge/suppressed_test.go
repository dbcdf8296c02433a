package judge_test

import (
	"testing"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// listed plants a change of the suppression list, answered at a time, and a send later.
func listed(run *judge.Run, what judge.Purpose, at, later int64, status int, kind string) {
	run.Calls = append(run.Calls,
		judge.Call{For: what, Node: 1, Subject: "x", Span: judge.Span{From: at - 5, To: at}, Status: 204},
		judge.Call{For: judge.Send, Subject: "x", Span: judge.Span{From: at + later, To: at + later + 5}, Status: status, Kind: kind, ID: "x"})
	if status == 200 {
		run.Mails = append(run.Mails, judge.Mail{At: at + later + 1, Mailbox: "x", ID: "x"})
	}
}

func TestJudge_PlantedSuppressions_IsFound(t *testing.T) {
	const calm = begin - 50_000
	finds(t, []planted{
		{"refused at once", func(r *judge.Run) { listed(r, judge.Suppress, calm, 1, 422, judge.Suppressed) }, ""},
		{"sent within the second", func(r *judge.Run) { listed(r, judge.Suppress, calm, 1000, 200, "") }, ""},
		{"sent a second later", func(r *judge.Run) { listed(r, judge.Suppress, calm, 1001, 200, "") }, "suppressed"},
		{"sent in a fault much later", func(r *judge.Run) { listed(r, judge.Suppress, calm, 50_100, 200, "") }, "suppressed"},
		{"sent after a fault began", func(r *judge.Run) { listed(r, judge.Suppress, begin-1500, 1200, 200, "") }, ""},
		{"sent, as it was lifted", func(r *judge.Run) {
			listed(r, judge.Suppress, calm, 5000, 200, "")
			r.Calls = append(r.Calls, judge.Call{For: judge.Lift, Subject: "x", Span: judge.Span{From: calm + 10, To: calm + 20}, Status: 204})
		}, ""},
		{"refused for nothing", func(r *judge.Run) { listed(r, judge.Lift, calm, 10, 422, judge.Suppressed) }, "suppressed"},
		{"refused, as it may have been suppressed", func(r *judge.Run) {
			listed(r, judge.Suppress, begin+100, 10, 422, judge.Suppressed)
			failed := &r.Calls[len(r.Calls)-2]
			failed.Status, failed.Kind = 503, "store-unavailable"
		}, ""},
		{"refused after it was lifted", func(r *judge.Run) {
			listed(r, judge.Suppress, calm, 1, 422, judge.Suppressed)
			listed(r, judge.Lift, calm+100, 1200, 422, judge.Suppressed)
		}, "suppressed"},
		{"refused just after it was lifted", func(r *judge.Run) {
			listed(r, judge.Suppress, calm, 1, 422, judge.Suppressed)
			listed(r, judge.Lift, calm+100, 900, 422, judge.Suppressed)
		}, ""},
	})
}
