package verify_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/verify"
)

// One mailbox, step by step. A hash is a letter, and a record "a5 b7" is a until 5 and b
// until 7.
func TestCodes(t *testing.T) {
	type step struct {
		now  int64
		does string // "add a until", "remove a", or "a" brought
		want string // the answer, and what is on record from then on
	}
	add := func(now int64, h byte, expires int64, want string) step {
		return step{now, fmt.Sprintf("add %c %d", h, expires), want}
	}
	for name, steps := range map[string][]step{
		"a life": {
			add(0, 'a', 5, "a5"),
			{4, "b", "incorrect a5"},
			{4, "a", "correct"},
		},
		"an end":              {add(0, 'a', 5, "a5"), {5, "a", "expired"}},
		"nothing":             {{0, "a", "expired"}},
		"one ends":            {add(0, 'a', 5, "a5"), add(0, 'b', 7, "a5 b7"), {5, "a", "incorrect b7"}, {6, "b", "correct"}},
		"in order":            {add(0, 'b', 7, "b7"), add(0, 'a', 5, "a5 b7"), add(0, 'c', 6, "a5 c6 b7")},
		"in order of hashes":  {add(0, 'b', 7, "b7"), add(0, 'c', 7, "b7 c7"), add(0, 'a', 7, "a7 b7 c7")},
		"again, longer":       {add(0, 'a', 5, "a5"), add(0, 'b', 7, "a5 b7"), add(1, 'a', 9, "b7 a9")},
		"again, not shorter":  {add(0, 'a', 5, "a5"), add(0, 'b', 7, "a5 b7"), add(1, 'a', 4, "a5 b7")},
		"never good":          {add(9, 'a', 9, ""), {8, "a", "expired"}},
		"adding clears":       {add(0, 'a', 5, "a5"), add(5, 'b', 9, "b9"), {0, "a", "incorrect b9"}},
		"taken back":          {add(0, 'a', 5, "a5"), add(0, 'b', 7, "a5 b7"), {1, "remove a", "b7"}, {1, "remove a", "b7"}, {1, "remove b", ""}},
		"taken back, expired": {add(0, 'a', 5, "a5"), add(0, 'b', 7, "a5 b7"), {5, "remove c", "b7"}},
		"before 1970 as well": {add(-9, 'a', -5, "a-5"), {-6, "b", "incorrect a-5"}, {-5, "a", "expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			var codes verify.Codes
			for i, step := range steps {
				var h byte
				var expires int64
				before, got := slices.Clone(codes), ""
				next := codes
				if n, _ := fmt.Sscanf(step.does, "add %c %d", &h, &expires); n == 2 {
					next = codes.Add(verify.Hash{h}, step.now, expires)
					got = spell("", next)
				} else if n, _ := fmt.Sscanf(step.does, "remove %c", &h); n == 1 {
					next = codes.Remove(verify.Hash{h}, step.now)
					got = spell("", next)
				} else {
					var result verify.Result
					result, next = codes.Check(verify.Hash{step.does[0]}, step.now)
					got = spell(result.String(), next)
				}
				if got != step.want || !next.Sorted() {
					t.Fatalf("step %d, %s at %d: %q, want %q", i, step.does, step.now, got, step.want)
				}
				if !slices.Equal(codes, before) {
					t.Fatalf("step %d changed what it was shown", i)
				}
				codes = next
			}
		})
	}
}

func spell(text string, codes verify.Codes) string {
	for _, kept := range codes {
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf("%c%d", kept.Hash[0], kept.Expires)
	}
	return text
}

// A full record makes room for the newest, which stays even if it expires first of all.
func TestCodesMakeRoom(t *testing.T) {
	var codes verify.Codes
	for n := range verify.MaxCodes {
		codes = codes.Add(verify.Hash{byte(n)}, 0, int64(100+n))
	}
	codes = codes.Add(verify.Hash{99}, 0, 50)
	if len(codes) != verify.MaxCodes || codes[0].Hash[0] != 99 || codes[1].Hash[0] != 1 || codes.Expires() != 100+verify.MaxCodes-1 {
		t.Errorf("%d codes, first %v, then %v", len(codes), codes[0], codes[1])
	}
	var longer verify.Codes
	for n := range verify.MaxCodes + 5 { // as a later version with a higher bound may leave
		longer = append(longer, verify.Kept{Hash: verify.Hash{byte(n)}, Expires: int64(100 + n)})
	}
	if longer.Sorted() {
		t.Error("too many codes pass for a record")
	}
	if codes = longer.Add(verify.Hash{99}, 0, 200); len(codes) != verify.MaxCodes {
		t.Errorf("%d codes", len(codes))
	}
}

func TestResultNames(t *testing.T) {
	got := fmt.Sprint(verify.Expired, verify.Incorrect, verify.Correct, verify.Spent, verify.Result(4), verify.Result(-1))
	if want := "expired incorrect correct spent result 4 result -1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
