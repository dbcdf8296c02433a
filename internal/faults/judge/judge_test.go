package judge_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/throttle"
)

const (
	begin = 1_000_000 // of the fault
	end   = 1_010_000
)

// failing is what the fault of a sound run may cause.
var failing = []string{"relay-unavailable", "delivery-unknown", "store-unavailable", "recipient-rejected"}

// sound is a run with all there is, and nothing wrong. One mailbox was mailed before the
// fault and one during it; a key was repeated; a call was lost with its mail.
func sound() *judge.Run {
	at := func(ms int64) judge.Span { return judge.Span{From: ms, To: ms + 10} }
	return &judge.Run{
		Tiers:   []throttle.Tier{{Name: "a", Limit: 1, Window: 10 * time.Minute}, {Name: "b", Limit: 2, Window: time.Hour}},
		Action:  throttle.Tier{Name: "a", Limit: 2, Window: 10 * time.Minute},
		Guesses: throttle.Tier{Name: "a", Limit: 2, Window: 10 * time.Minute},
		Nodes:   3,
		Terms:   judge.Terms{Gone: true, Fails: failing},
		Faults:  []judge.Span{{From: begin - 100_000, To: begin - 90_000}, {From: begin, To: end}},
		Held:    []judge.Span{{From: begin + 5, To: end - 1000}},
		Calls: []judge.Call{
			{For: judge.Send, Subject: "before", Span: at(begin - 5000), Status: 200, ID: "1"},
			{For: judge.Send, Subject: "before", Span: at(begin - 4000), Status: 429, Kind: "quota-exceeded",
				Limit: "a", Clock: begin - 3995, Wait: 598_998},
			{For: judge.Send, Subject: "during", Span: at(begin + 10), Status: 503, Kind: "relay-unavailable"},
			{For: judge.Send, Subject: "during", Span: at(begin + 50), Status: 200, ID: "2", Key: "k", Body: "yes"},
			{For: judge.Send, Subject: "during", Span: at(begin + 70), Status: 200, ID: "2", Key: "k", Body: "yes"},
			{For: judge.Send, Subject: "lost", Span: at(begin + 60), Status: 0},
			{For: judge.Send, Subject: "unknown", Span: at(begin + 60), Status: 504, Kind: "delivery-unknown", ID: "4"},
			{For: judge.Send, Subject: "refused", Span: at(begin + 60), Status: 422, Kind: "recipient-rejected", ID: "5"},
			{For: judge.Verify, Subject: "during", Span: at(end + 10), Status: 422, Kind: "code-incorrect", Code: "000000"},
			{For: judge.Verify, Subject: "during", Span: at(end + 20), Status: 200, Code: "123456", Right: true},
			{For: judge.Take, Subject: "visitor", Span: at(end + 10), Status: 200, ID: "6"},
			{For: judge.Take, Subject: "visitor", Span: at(end + 20), Status: 200, ID: "7"},
			{For: judge.Release, Subject: "visitor", Span: at(end + 30), Status: 200, ID: "7", Released: true},
			{For: judge.Take, Subject: "visitor", Span: at(end + 40), Status: 200, ID: "8"},
		},
		Mails: []judge.Mail{
			{At: begin - 4995, Mailbox: "before", ID: "1"},
			{At: begin + 55, Mailbox: "during", ID: "2", Code: "123456"},
			{At: begin + 62, Mailbox: "lost", ID: "3"},
			{At: begin + 62, Mailbox: "refused", ID: "5", Refused: true},
		},
		Finals: []judge.Final{
			final("before", 1, "1"), final("during", 1, "2"), final("lost", 1, "3"), final("refused", 1, "5"),
			{For: judge.Take, Subject: "visitor", Span: at(end + 90), Used: []int{2}},
		},
	}
}

// final is the final state of a mailbox, with so many used of each tier.
func final(mailbox string, used int, ids ...string) judge.Final {
	return judge.Final{For: judge.Send, Subject: mailbox, Span: judge.Span{From: end + 90, To: end + 100}, Used: []int{used, used}, IDs: ids}
}

func TestJudge_SoundRun_NoViolation(t *testing.T) {
	for _, terms := range []judge.Terms{{Gone: true}, {Gone: true, Alone: true}, {Gone: true, Forgets: true}} {
		run := sound()
		run.Terms, run.Terms.Fails = terms, failing
		if found := judge.Judge(run); found != nil {
			t.Errorf("%+v: found %+v", terms, found)
		}
	}
}

// notSent plants a mailbox that is charged in the end for the call that the relay's fault has failed.
func notSent(run *judge.Run) {
	run.Calls[2].Subject = "back"
	run.Finals = append(run.Finals, final("back", 1, "x"))
}

// mailed plants a mailbox that was sent so many emails, each with its answer.
func mailed(run *judge.Run, mailbox string, at int64, count int) {
	for i := range count {
		id := fmt.Sprint(mailbox, len(run.Mails))
		run.Calls = append(run.Calls, judge.Call{For: judge.Send, Node: i, Subject: mailbox,
			Span: judge.Span{From: at, To: at + 5}, Status: 200, ID: id})
		run.Mails = append(run.Mails, judge.Mail{At: at, Mailbox: mailbox, ID: id})
	}
}

func TestJudge_Planted_IsFound(t *testing.T) {
	finds(t, []planted{
		{"an email too many", func(r *judge.Run) { mailed(r, "new", begin-9000, 2) }, "limits"},
		{"three nodes alone", func(r *judge.Run) { r.Terms.Alone = true; mailed(r, "new", begin+9, 3); degraded(r, 3) }, ""},
		{"one of three nodes alone", func(r *judge.Run) { r.Terms.Alone = true; mailed(r, "new", begin+9, 3); degraded(r, 1) }, "limits"},
		{"four mails of three nodes alone", func(r *judge.Run) { r.Terms.Alone = true; mailed(r, "new", begin+9, 4); degraded(r, 4) }, "limits"},
		{"three nodes alone, not in time to say so", func(r *judge.Run) {
			r.Terms.Alone = true
			mailed(r, "new", begin+9, 3)
			r.Calls[len(r.Calls)-1].Status, r.Calls[len(r.Calls)-1].Kind, r.Calls[len(r.Calls)-2].Status = 504, "delivery-unknown", 0
		}, ""},
		{"forgotten", func(r *judge.Run) { r.Terms.Forgets = true; mailed(r, "new", begin-9, 2) }, ""},
		{"forgotten twice", func(r *judge.Run) { r.Terms.Forgets = true; mailed(r, "new", begin-9, 3) }, "limits"},
		{"forgotten long before", func(r *judge.Run) { r.Terms.Forgets = true; mailed(r, "new", begin-9000, 2) }, "limits"},
		{"two mails of one admission", func(r *judge.Run) { r.Mails = append(r.Mails, r.Mails[0]) }, "mails"},
		{"a 200 without an email", func(r *judge.Run) { r.Mails = r.Mails[1:] }, "mails"},
		{"a 200 whose email went to another", func(r *judge.Run) { r.Mails[0].Mailbox = "lost" }, "mails"},
		{"an email without a request", func(r *judge.Run) { r.Mails = append(r.Mails, judge.Mail{At: begin, Mailbox: "unasked", ID: "9"}) }, "mails"},
		{"an unknown outcome of a key that is answered", func(r *judge.Run) { r.Calls[4].Status = 504 }, "keys"},
		{"an unknown outcome of a key in flight when a clock was set", func(r *judge.Run) {
			r.Terms.ClockSet = true
			r.Calls[4].Status, r.Calls[4].Kind, r.Calls[4].Body = 504, "delivery-unknown", "unknown"
		}, ""},
		{"a node alone does not know", func(r *judge.Run) {
			alone(r, 1)
			r.Calls[4].Status, r.Calls[4].Kind, r.Calls[4].Degraded = 504, "delivery-unknown", false
		}, ""},
		{"another node's answer when all is over", func(r *judge.Run) {
			alone(r, 1)
			again := r.Calls[4]
			r.Calls[3].Degraded = true
			again.Node, again.Replayed, again.Span = 0, true, judge.Span{From: end + 50, To: end + 60}
			r.Calls = append(r.Calls, again)
		}, ""},
		{"a third answer when all is over", func(r *judge.Run) {
			alone(r, 1)
			again := r.Calls[4]
			again.Replayed, again.Body, again.Span = true, "no", judge.Span{From: end + 50, To: end + 60}
			r.Calls = append(r.Calls, again)
		}, "keys"},
		{"another answer that no node made alone", func(r *judge.Run) { alone(r, 1); r.Calls[4].Degraded = false }, "keys"},
		{"another answer, the first forgotten", func(r *judge.Run) { r.Terms.Forgets = true; r.Calls[4].Body = "yes " }, ""},
		{"a wrong code taken", func(r *judge.Run) { r.Calls[8].Status, r.Calls[8].Kind = 200, "" }, "codes"},
		{"a code right twice", func(r *judge.Run) { r.Calls = append(r.Calls, r.Calls[9]) }, "codes"},
		{"a guess too many", func(r *judge.Run) { r.Calls = append(r.Calls, r.Calls[8], r.Calls[8]) }, "codes"},
		{"forgotten though charged", func(r *judge.Run) { r.Finals[0].Used[1] = 0 }, "finals"},
		{"a mail of a call that did not get there", func(r *judge.Run) { r.Calls[5].Kind = judge.NotAsked }, "mails"},
		{"charged and not on record", func(r *judge.Run) { r.Finals[0].IDs = nil }, "finals"},
		{"charged and not on record of a store that forgets", func(r *judge.Run) { r.Terms.Forgets = true; r.Finals[1].IDs = nil }, ""},
		{"charged for what was not sent", func(r *judge.Run) { notSent(r) }, "finals"},
		{"charged for what was not sent, the refund forgotten", func(r *judge.Run) { r.Terms.Forgets = true; notSent(r) }, ""},
		{"charged twice", func(r *judge.Run) { r.Finals[0].IDs = []string{"1", "1"} }, "finals"},
		{"charged for nothing, where a tier is full", func(r *judge.Run) { r.Finals[0].IDs = []string{"1", "12"} }, "finals"},
		{"an unknown outcome of a key and its admission", func(r *judge.Run) {
			repeated(r, begin+60)
			r.Calls[len(r.Calls)-1].ID, r.Calls[len(r.Calls)-2].ID = "", ""
			r.Finals = append(r.Finals, final("repeated", 1, "14"))
		}, ""},
		{"a wait too short", func(r *judge.Run) { r.Calls[1].Wait -= 1000 }, "waits"},
		{"a wait for another tier", func(r *judge.Run) { r.Calls[1].Limit = "b" }, "waits"},
		{"no wait", func(r *judge.Run) { r.Calls[1].Wait = 0; r.Calls[1].Clock += 598_998 }, "waits"},
		{"a wait longer than the window", func(r *judge.Run) { r.Calls[1].Clock, r.Calls[1].Wait = begin-6998, 602_001 }, "waits"},
		{"a wait for what was then given back", func(r *judge.Run) {
			r.Calls[2].Subject = "back"
			denied(r, "back", begin+15)
		}, ""},
		{"a wait for a call that was lost", func(r *judge.Run) { denied(r, "lost", begin+65) }, ""},
		{"a wait by a clock that was set", func(r *judge.Run) { r.Terms.ClockSet = true; r.Calls[1].Wait += 90_000 }, ""},
		{"no answer of a node that is there", func(r *judge.Run) { r.Terms.Gone = false }, "answers"},
		{"a node that does not know yet", func(r *judge.Run) { r.Terms.Alone, r.Terms.Unknown = true, 9; noStore(r, begin+9) }, ""},
		{"a node that should know", func(r *judge.Run) { r.Terms.Alone, r.Terms.Unknown = true, 8; noStore(r, begin+9) }, "answers"},
		{"a node that meets a broken connection when the store is back", func(r *judge.Run) { r.Terms.Alone, r.Terms.Unknown = true, 1; noStore(r, end-1000) }, ""},
		{"a node that meets one long after", func(r *judge.Run) {
			r.Terms.Alone, r.Terms.Unknown, r.Held[0].To = true, 1, end-3000
			noStore(r, end-999)
		}, "answers"},
		{"a node that does not continue alone with an action", func(r *judge.Run) {
			r.Terms.Alone = true
			noStore(r, begin+9)
			r.Calls[len(r.Calls)-1].For = judge.Take
		}, "answers"},
		{"a node that lacks a reply as the fault began", func(r *judge.Run) {
			r.Terms.Alone = true
			noStore(r, begin-1)
			r.Calls[len(r.Calls)-1].For = judge.Take
		}, ""},
		{"a node that lacks one to a look", func(r *judge.Run) { r.Terms.Alone = true; noStore(r, begin-1) }, "answers"},
		{"a node that must not continue alone", func(r *judge.Run) { noStore(r, begin+9) }, ""},
		{"a node that does not continue alone with a key", func(r *judge.Run) {
			r.Terms.Alone = true
			noStore(r, begin+9)
			r.Calls[len(r.Calls)-1].For, r.Calls[len(r.Calls)-1].Key = judge.Send, "n"
		}, ""},
		{"a 504 after the fault", func(r *judge.Run) { repeated(r, end+60) }, "answers"},
		{"no store after the fault on a strained machine", func(r *judge.Run) { r.Strained = true; noStore(r, end+9) }, ""},
		{"degraded after the fault", func(r *judge.Run) { r.Terms.Alone, r.Calls[9].Degraded = true, true }, "answers"},
		{"no answer after the fault", func(r *judge.Run) { r.Calls[11].Status = 0 }, "answers"},
		{"a fault on our side", func(r *judge.Run) { r.Calls[2].Status = 500 }, "answers"},
		{"a 503 where callers must not notice", func(r *judge.Run) { r.Terms.Quiet = true }, "answers"},
	})
}

// A planted is something done to a sound run.
type planted struct {
	name  string
	plant func(*judge.Run)
	want  string // the rule; none, if it is allowed
}

// finds has the judge find what is planted, and nothing where that is allowed.
func finds(t *testing.T, tests []planted) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := sound()
			tt.plant(run)
			found := judge.Judge(run)
			if tt.want == "" && found != nil {
				t.Errorf("found %+v", found)
			}
			if tt.want != "" && !slices.ContainsFunc(found, func(v judge.Violation) bool { return v.Rule == tt.want }) {
				t.Errorf("found %+v, want %s", found, tt.want)
			}
		})
	}
}

// repeated plants a key that was answered 504 at some time, and again after the fault.
func repeated(run *judge.Run, first int64) {
	for _, at := range []int64{first, end + 100} {
		run.Calls = append(run.Calls, judge.Call{For: judge.Send, Subject: "repeated", Key: "r",
			Span: judge.Span{From: at, To: at + 5}, Status: 504, Kind: "delivery-unknown", ID: "10"})
	}
}

func noStore(run *judge.Run, at int64) {
	run.Calls = append(run.Calls, judge.Call{For: judge.Look, Subject: "new", Span: judge.Span{From: at, To: at + 1}, Status: 503, Kind: "store-unavailable"})
}

// degraded makes so many of the last answers those of nodes alone.
func degraded(run *judge.Run, count int) {
	for i := range count {
		run.Calls[len(run.Calls)-1-i].Degraded = true
	}
}

// denied plants a denial for what was admitted just before.
func denied(run *judge.Run, mailbox string, at int64) {
	run.Calls = append(run.Calls, judge.Call{For: judge.Send, Subject: mailbox, Span: judge.Span{From: at, To: at + 1},
		Status: 429, Kind: "quota-exceeded", Limit: "a", Clock: at, Wait: 599_999})
}

// alone makes the second answer to a key one that a node made alone.
func alone(run *judge.Run, node int) {
	run.Terms.Alone = true
	run.Calls[4].Body, run.Calls[4].Node, run.Calls[4].Degraded = "yes ", node, true
}

func TestLog_Lines_FindsSecretsAndAlarms(t *testing.T) {
	secret := map[string]bool{"q17n4": true, "482913": true, "abcd12": true}
	tests := []struct {
		line string
		want bool
	}{
		{`{"time":"2026-11-20T12:00:00.482913Z","msg":"request","wait_ms":482913,"mailbox":"ff8d9819fc"}`, false},
		{`{"msg":"request","cause":"554 5.1.1 <Q17N4@box.example>"}`, true},
		{`{"msg":"request","cause":"the code 482913 is wrong"}`, true},
		{`{"msg":"request","cause":"ABCD12"}`, true},
		{`{"msg":"request","request_id":"1482913f00000000"}`, false},
		{`{"msg":"request","smtp":{"code":554,"lines":["not here","<q17n4@box.example> is unknown"]}}`, true},
		{`{"msg":"request","smtp":{"code":482913,"lines":[482913]}}`, false},
		{`{"msg":"request","headers":{"q17n4":1}}`, true},
		{`no JSON: q17n4+tag@box.example`, true},
		{`WARNING: DATA RACE`, true},
		{`panic: runtime error`, true},
		{``, false},
	}
	for _, tt := range tests {
		found, err := judge.Log("node 1", strings.NewReader("{}\n"+tt.line), secret)
		if err != nil || (len(found) == 1) != tt.want {
			t.Errorf("%s: found %+v, %v", tt.line, found, err)
		}
	}
}

func TestLeftovers_MoreThanSlack_IsFound(t *testing.T) {
	before := []judge.Figure{{Name: "sound", Value: 10}, {Name: "leak", Value: 10}}
	after := []judge.Figure{{Name: "sound", Value: 15, Slack: 5}, {Name: "leak", Value: 16, Slack: 5}}
	if found := judge.Leftovers(before, after); len(found) != 1 || !strings.HasPrefix(found[0].What, "leak ") {
		t.Errorf("found %+v", found)
	}
}

func TestGrowth_Points_Table(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   float64
	}{
		{"nothing", nil, 0},
		{"one", []float64{7}, 0},
		{"flat", []float64{5, 5, 5, 5, 5, 5}, 0},
		{"grown before", []float64{0, 50, 90, 100, 100, 100}, 0},
		{"swinging", []float64{0, 0, 0, 0, 0, 0, 10, 8, 12, 12, 8, 10}, 0},
		{"growing", []float64{0, 10, 20, 30, 40, 50, 60, 70}, 40},
	}
	for _, tt := range tests {
		if got := judge.Growth(tt.values); math.Abs(got-tt.want) > 0.6 {
			t.Errorf("%s: %g, want %g", tt.name, got, tt.want)
		}
	}
}

func TestStory_Mailbox_InOrder(t *testing.T) {
	const want = " -100000 fault until -90000\n" +
		"       0 fault until 10000\n" +
		"      60 send to node 0, until 70: 0   key \"\" degraded false replayed false\n" +
		"      62 email 3, refused false\n"
	run := sound()
	run.Faults[0], run.Faults[1] = run.Faults[1], run.Faults[0]
	if got := run.Story("lost"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
