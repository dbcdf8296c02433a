package mailer

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"
)

// TestLine plays callers against a line for four: "a" joins, "!" serves one, and
// "-a" gives back what was served to a. What happens is written down: "a" was
// served, "(a)" was put out, "a?" found no place.
func TestLine(t *testing.T) {
	for name, c := range map[string]struct {
		steps, want string
		turned      bool
	}{
		"one caller, in order of arrival":        {steps: "a1 a2 a3 ! ! ! !", want: "a1 a2 a3 nobody"},
		"callers take turns":                     {steps: "a1 a2 a3 b1 ! -a ! -b ! -a !", want: "a1 b1 a2 a3"},
		"who has less in use is first":           {steps: "a1 a2 a3 b1 ! ! !", want: "a1 b1 a2"},
		"one at a time does not overtake twice":  {steps: "a1 a2 a3 b1 ! -a ! -b b2 ! -a ! -b", want: "a1 b1 a2 b2"},
		"a full line is full for who filled it":  {steps: "a1 a2 a3 a4 a5", want: "a5?"},
		"another takes a place of the most":      {steps: "a1 a2 a3 a4 b1 b2 b3", want: "(a4) (a3) b3?"},
		"of the most of three as well":           {steps: "c1 a1 a2 a3 b1 d1", want: "(a3) (a2)"},
		"and nobody of those with as many":       {steps: "a1 b1 c1 d1 e1", want: "e1?"},
		"turned, the last is first":              {steps: "a1 a2 a3 ! ! !", want: "a3 a2 a1", turned: true},
		"turned, the first is put out":           {steps: "a1 a2 a3 a4 b1 ! !", want: "(a1) a4 b1", turned: true},
		"what is given back is not held against": {steps: "a1 ! -a b1 a2 ! !", want: "a1 b1 a2"},
		"who comes back is not ahead of others":  {steps: "a1 ! -a b1 ! -b b2 ! -b b3 ! -b c1 a2 ! !", want: "a1 b1 b2 b3 c1 a2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := playLine(t, strings.Fields(c.steps), c.turned); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func playLine(t *testing.T, steps []string, turned bool) string {
	l := newLine(4, math.MaxInt)
	var waiting []*waiter
	var happened []string
	at := int64(0)
	for _, step := range steps {
		at++
		switch {
		case step == "!":
			w := l.next(anyDomain, func(*waiter) bool { return turned })
			if w == nil {
				happened = append(happened, "nobody")
				continue
			}
			l.took(w.caller)
			happened = append(happened, w.domain)
		case step[0] == '-':
			l.gave(step[1:])
		default:
			w := l.join(claim{caller: step[:1], domain: step}, at, func(*waiter) bool { return turned })
			if w == nil {
				happened = append(happened, step+"?")
				continue
			}
			waiting = append(waiting, w)
		}
		for _, w := range waiting {
			if len(w.called) == 1 && !<-w.called {
				happened = append(happened, fmt.Sprintf("(%s)", w.domain))
			}
		}
		if l.count > 4 {
			t.Fatalf("%d wait", l.count)
		}
	}
	return strings.Join(happened, " ")
}

// TestAheadInTheLine: how many leave before the next of a caller.
func TestAheadInTheLine(t *testing.T) {
	l := newLine(100, math.MaxInt)
	for caller, n := range map[string]int{"a": 5, "b": 2} {
		for range n {
			l.join(claim{caller: caller}, 0, inOrder)
		}
	}
	for caller, want := range map[string]int{"a": 7, "b": 5, "c": 2} {
		if got := l.ahead(caller); got != want {
			t.Errorf("ahead of %s's next: %d, want %d", caller, got, want)
		}
	}
}

// TestAcquaintances: who was answered for promptly is known, until it is slow, and
// then not again for ten minutes; those of the last mails are remembered.
func TestAcquaintances(t *testing.T) {
	a := newAcquaintances(8)
	for i, step := range []struct {
		at       int64
		promptly bool
		want     bool
	}{
		{0, true, true}, {1, true, true}, {2, false, false}, {3, true, false}, {grudge + 1, true, false},
		{grudge + 2, true, true}, {grudge + 3, false, false}, {grudge + 4, false, false}, {2*grudge + 3, true, false}, {2*grudge + 4, true, true},
	} {
		if a.note("a.example", step.promptly, step.at); a.prompt("a.example") != step.want {
			t.Errorf("step %d: known %v", i+1, !step.want)
		}
	}
	if a.prompt("b.example") {
		t.Error("somebody nobody has heard of is known")
	}
	for n := range 100 {
		a.note(fmt.Sprint(n), true, 0)
		a.note("a.example", true, 0)
		if len(a.young)+len(a.old) > 8 || !a.prompt("a.example") || !a.prompt(fmt.Sprint(n)) {
			t.Fatalf("after %d: %d are remembered, a known: %v", n, len(a.young)+len(a.old), a.prompt("a.example"))
		}
	}
	if a.prompt("0") {
		t.Error("nobody is forgotten")
	}
}

// TestAcquaintancesKeepNoAddress: a domain is cut from an address, which is not kept for it.
func TestAcquaintancesKeepNoAddress(t *testing.T) {
	a := newAcquaintances(4)
	lent := []byte("somebody@a.example")
	domain := unsafe.String(&lent[len("somebody@")], len("a.example"))
	for n := range 5 { // young is a half: each second one is of the old
		a.note(domain, true, 0)
		a.note(fmt.Sprint(n), true, 0)
	}
	for i := range lent {
		lent[i] = 'X'
	}
	if !a.prompt("a.example") {
		t.Error("the domain changed with the address")
	}
}
