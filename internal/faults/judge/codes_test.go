package judge_test

import (
	"testing"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// expired has the right code refused; checked plants one more check of it, so much before.
func expired(run *judge.Run) { told(&run.Calls[9], 410, "code-expired") }

func checked(run *judge.Run, before int64, status int, kind string, right bool) {
	c := run.Calls[9]
	c.Span.From, c.Span.To, c.Right = c.Span.From-before, c.Span.To-before, right
	told(&c, status, kind)
	run.Calls = append(run.Calls, c)
}

// In calm "during" is checked with a wrong code, and then with the right one: calls 8 and 9.
func TestJudge_PlantedRightCodes_IsFound(t *testing.T) {
	finds(t, []planted{
		{"a right code that is wrong", func(r *judge.Run) { told(&r.Calls[9], 422, "code-incorrect") }, "codes"},
		{"a right code that is not looked at", func(r *judge.Run) { told(&r.Calls[9], 429, "quota-exceeded") }, "codes"},
		{"a right code that was used", func(r *judge.Run) { expired(r); checked(r, 5, 200, "", true) }, ""},
		{"a right code that was used by a call that did not get there", func(r *judge.Run) {
			expired(r)
			checked(r, end-begin, 0, judge.NotAsked, true)
		}, "codes"},
		{"a right code that is used later", func(r *judge.Run) { expired(r); checked(r, -50, 200, "", true) }, "codes"},
		{"a right code when the guesses are spent", func(r *judge.Run) {
			expired(r)
			checked(r, 5, 422, "code-incorrect", false)
		}, ""},
		{"a right code of a mail that was refused", func(r *judge.Run) { expired(r); r.Mails[1].Code = ""; r.Mails[3].Code = "123456" }, ""},
		{"a right code that another node made alone", func(r *judge.Run) {
			expired(r)
			r.Terms.Alone, r.Calls[9].Span = true, judge.Span{From: begin + 100, To: begin + 110}
		}, ""},
		{"a right code that a node made alone and has told of", func(r *judge.Run) { expired(r); r.Terms.Alone = true }, "codes"},
		{"a right code that was forgotten", func(r *judge.Run) { expired(r); r.Terms.Forgets = true }, ""},
		{"a wrong code that was mailed by chance", func(r *judge.Run) { r.Calls[9].Right = false }, ""},
	})
}
