package judge_test

import (
	"testing"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// told makes a call one that was answered so.
func told(c *judge.Call, status int, kind string) { c.Status, c.Kind = status, kind }

// refuses makes the fault one in which nodes refuse, held for so long.
func refuses(run *judge.Run, from, to int64) {
	run.Terms.Refuses, run.Held = true, []judge.Span{{From: from, To: to}}
}

// In the fault "during" is answered 200 from begin+50 to begin+60, and again from begin+70 to
// begin+80: calls 3 and 4.
func TestJudge_PlantedAnswers_IsFound(t *testing.T) {
	finds(t, []planted{
		{"a node that continues alone where none may", func(r *judge.Run) { r.Calls[3].Degraded = true }, "answers"},
		{"a refusal where no relay refuses", func(r *judge.Run) { r.Terms.Fails = failing[:3] }, "answers"},
		{"a 503 that the fault is no reason for", func(r *judge.Run) { r.Terms.Fails = failing[1:] }, "answers"},
		{"a refusal in calm", func(r *judge.Run) { r.Calls[7].Span = judge.Span{From: end + 80, To: end + 90} }, "answers"},
		{"a request that cannot be read", func(r *judge.Run) { told(&r.Calls[2], 400, "bad-request") }, "answers"},
		{"a refusal of before in calm", func(r *judge.Run) {
			again := r.Calls[7]
			again.Span, again.Replayed = judge.Span{From: end + 80, To: end + 90}, true
			r.Calls = append(r.Calls, again)
		}, ""},
		{"in flight without a key", func(r *judge.Run) { told(&r.Calls[2], 409, "idempotency-in-flight") }, "answers"},
		{"a take where nodes refuse", func(r *judge.Run) {
			took(r, "new", begin+9, 1)
			r.Calls[len(r.Calls)-1].Degraded = false
			refuses(r, begin+8, begin+15)
		}, "answers"},
		{"a 200 requested before the fault was complete", func(r *judge.Run) { refuses(r, begin+50, begin+80) }, ""},
	})
}
