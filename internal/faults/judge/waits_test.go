package judge_test

import (
	"testing"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// deniedTake plants a denial of "visitor" at a moment, for a take of another.
func deniedTake(run *judge.Run, at, took int64) {
	run.Calls = append(run.Calls, judge.Call{For: judge.Take, Subject: "visitor", Span: judge.Span{From: at, To: at + 1},
		Status: 429, Kind: "quota-exceeded", Limit: "a", Clock: at, Wait: took + run.Action.Window.Milliseconds() - at})
}

// refunded is the run without the take after the refund, which ended 40 ms after the fault.
func refunded(run *judge.Run) {
	run.Calls, run.Finals = append(run.Calls[:13], run.Calls[14:]...), run.Finals[:4]
}

// guessed plants a guess that is not looked at, for one of this moment.
func guessed(run *judge.Run, guess int64) {
	const at = end + 60
	run.Calls = append(run.Calls, judge.Call{For: judge.Verify, Subject: "during", Span: judge.Span{From: at, To: at + 1},
		Status: 429, Kind: "quota-exceeded", Limit: "a", Clock: at, Wait: guess + run.Guesses.Window.Milliseconds() - at})
}

// refusedTake plants a take of "new" that was refused for one before, while a node may be alone,
// and a look that is told to wait for it.
func refusedTake(run *judge.Run, degraded bool, until, look int64) {
	const first, second = end - 3000, end - 1500
	told := func(purpose judge.Purpose, at, until, took int64) judge.Call {
		return judge.Call{For: purpose, Subject: "new", Span: judge.Span{From: at, To: until}, Status: 200,
			Limit: "a", Clock: at, Wait: took + run.Action.Window.Milliseconds() - at}
	}
	run.Terms.Alone, run.Action.Limit = true, 1
	refused := told(judge.Take, second, until, first)
	refused.Status, refused.Kind, refused.Degraded = 429, "quota-exceeded", degraded
	run.Calls = append(run.Calls[:10], told(judge.Take, first, first+10, first), refused, told(judge.Look, look, look+1, second))
	run.Calls[10].ID, run.Finals = "6", run.Finals[:4]
}

// looked plants a look that is told of no wait.
func looked(run *judge.Run, subject string, at int64) *judge.Call {
	run.Calls = append(run.Calls, judge.Call{For: judge.Look, Subject: subject, Span: judge.Span{From: at, To: at + 1}, Status: 200})
	return &run.Calls[len(run.Calls)-1]
}

// The takes of "visitor" are the calls 10, 11 and 13; the second is given back by call 12.
func TestJudge_PlantedWaits_IsFound(t *testing.T) {
	finds(t, []planted{
		{"a take that waits where there is room", func(r *judge.Run) { refunded(r); deniedTake(r, end+1091, end+15) }, "waits"},
		{"a take that waits for one just refunded", func(r *judge.Run) {
			refunded(r)
			r.Calls[12].Span = judge.Span{From: end + 1030, To: end + 1041}
			deniedTake(r, end+1091, end+15)
		}, ""},
		{"a take that waits for one refunded in a fault", func(r *judge.Run) { refunded(r); deniedTake(r, end+91, end+15) }, ""},
		{"a guess too many", func(r *judge.Run) {
			r.Calls[9].Right = false
			told(&r.Calls[9], 422, "code-incorrect")
			guessed(r, end+15)
		}, ""},
		{"a look at a full tier", func(r *judge.Run) {
			c := looked(r, "visitor", end+60)
			c.Limit, c.Clock, c.Wait = "a", end+60, 599_955
		}, ""},
		{"a look when the mail has left the window", func(r *judge.Run) { looked(r, "before", begin-5000+600_010) }, ""},
		{"a look that tells of an unheard admission, while it is asked for", func(r *judge.Run) { refusedTake(r, false, end-500, end-500) }, ""},
		{"a look that tells of it at the fault's end", func(r *judge.Run) { refusedTake(r, true, end-501, end) }, ""},
		{"a look that tells of it in calm", func(r *judge.Run) { refusedTake(r, true, end-501, end+1) }, "waits"},
		{"a look that tells of it where no node continues alone", func(r *judge.Run) { refusedTake(r, true, end-501, end-500); r.Terms.Alone = false }, "waits"},
		{"a look that tells of a take that the store was never asked for", func(r *judge.Run) {
			refusedTake(r, true, end-501, end-500)
			told(&r.Calls[11], 422, "invalid-input")
		}, "waits"},
		{"a look in the fault", func(r *judge.Run) { looked(r, "during", begin+100) }, "limits"},
		{"a look in the fault by a node alone", func(r *judge.Run) { r.Terms.Alone = true; looked(r, "during", begin+100) }, ""},
		{"a look at what was forgotten", func(r *judge.Run) { r.Terms.Forgets = true; looked(r, "during", end+100) }, ""},
	})
}
