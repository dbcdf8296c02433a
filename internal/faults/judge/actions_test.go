package judge_test

import (
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// took plants so many takes of a subject in the fault, each by a node that says it is alone,
// and as many used in the end as there may be.
func took(run *judge.Run, subject string, at int64, count int) {
	for i := range count {
		run.Calls = append(run.Calls, judge.Call{For: judge.Take, Node: i, Subject: subject, Degraded: true,
			Span: judge.Span{From: at, To: at + 5}, Status: 200, ID: fmt.Sprint(subject, i)})
	}
	run.Finals = append(run.Finals, judge.Final{For: judge.Take, Subject: subject, Span: judge.Span{From: end + 90, To: end + 100}, Used: []int{min(count, 2)}})
}

// drift is how far the clock of a node alone may be off.
const drift = 250

// tookAgain plants two takes of a node alone, and one in calm.
func tookAgain(run *judge.Run, at int64) {
	run.Terms.Alone = true
	took(run, "new", begin+9, 2)
	run.Calls[len(run.Calls)-1].Node = 0
	run.Calls = append(run.Calls, judge.Call{For: judge.Take, Subject: "new", Span: judge.Span{From: at, To: at}, Status: 200, ID: "well"})
}

// gaveBack plants what a node gave back in the fault.
func gaveBack(run *judge.Run, id string, node int) {
	run.Calls = append(run.Calls, judge.Call{For: judge.Release, Node: node, Subject: "new", ID: id, Released: true,
		Span: judge.Span{From: begin + 20, To: begin + 21}, Status: 200})
}

// tookBack plants a take before the fault that was given back at some time, and is used in the end.
func tookBack(run *judge.Run, at int64) {
	took(run, "new", begin-200, 1)
	run.Calls[len(run.Calls)-1].Degraded = false
	gaveBack(run, "new0", 0)
	run.Calls[len(run.Calls)-1].Span = judge.Span{From: at, To: at + 1}
}

// In the run there are the takes 6 at end+20, 7 at end+30, which is back from end+30 on, and 8
// at end+50: calls 10, 11, 12 and 13.
func TestJudge_PlantedTakes_IsFound(t *testing.T) {
	finds(t, []planted{
		{"a take too many", func(r *judge.Run) { r.Calls[12].For = judge.Look }, "limits"},
		{"a take that left its window", func(r *judge.Run) {
			r.Calls[12].For = judge.Look
			r.Calls[13].Span = judge.Span{From: end + 600_010, To: end + 600_010}
			r.Finals[4].Span = r.Calls[13].Span
		}, ""},
		{"a release that did not get there", func(r *judge.Run) { r.Calls[12].Status, r.Calls[12].Kind = 0, judge.NotAsked }, "limits"},
		{"a release of what has nearly left its window", func(r *judge.Run) {
			r.Calls[12].Released, r.Calls[12].Span = false, judge.Span{From: end + 600_018, To: end + 600_019}
			r.Calls[13].Span, r.Finals = judge.Span{From: end + 600_020, To: end + 600_021}, r.Finals[:4]
		}, "limits"},
		{"a take where those of a node alone may have left", func(r *judge.Run) { tookAgain(r, begin+600_009-drift) }, ""},
		{"a take where those of a node alone have not", func(r *judge.Run) { tookAgain(r, begin+600_008-drift) }, "limits"},
		{"two takes with one id", func(r *judge.Run) { r.Calls[13].ID = "6" }, "limits"},
		{"a take more of three nodes alone", func(r *judge.Run) { r.Terms.Alone = true; took(r, "new", begin+9, 7) }, "limits"},
		{"used for nothing", func(r *judge.Run) { r.Calls[13].Status, r.Calls[13].Kind = 429, "quota-exceeded" }, "finals"},
		{"used for what a node took alone and gave back", func(r *judge.Run) {
			r.Terms.Alone = true
			took(r, "new", begin+9, 1)
			gaveBack(r, "new0", 0)
		}, "finals"},
		{"used for what a node took alone and another gave back", func(r *judge.Run) {
			r.Terms.Alone = true
			took(r, "new", begin+9, 1)
			gaveBack(r, "new0", 1)
		}, ""},
		{"used for what was given back in the fault", func(r *judge.Run) { tookBack(r, begin+20) }, "finals"},
		{"used for what was given back to a store that forgets", func(r *judge.Run) { r.Terms.Forgets = true; tookBack(r, begin+20) }, ""},
		{"used for what was given back to one after its fault", func(r *judge.Run) { r.Terms.Forgets = true; tookBack(r, end+20) }, "finals"},
	})
}
