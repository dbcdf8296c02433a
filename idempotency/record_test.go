package idempotency_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
)

// One name, step by step, with leases of 10 and answers for 100. A lease is "a1": token a
// for request 1.
func TestRecord(t *testing.T) {
	type step struct {
		now   int64
		does  string
		lease string
		want  string
	}
	const begin, finish, abandon = "begin", "finish", "abandon"
	for name, steps := range map[string][]step{
		"to the end": {
			{0, begin, "a1", "started"}, {9, begin, "b1", "in flight 1"}, {9, finish, "a1", "true"},
			{108, begin, "b1", "replay 201"}, {108, begin, "b2", "mismatch"}, {109, begin, "b2", "started"},
		},
		"to a crash":           {{0, begin, "a1", "started"}, {9, begin, "b2", "mismatch"}, {10, begin, "b2", "started"}, {19, begin, "c2", "in flight 1"}},
		"begun again":          {{0, begin, "a1", "started"}, {5, begin, "a1", "started"}, {9, begin, "b1", "in flight 1"}, {10, begin, "b1", "started"}},
		"begun again, another": {{0, begin, "a1", "started"}, {5, begin, "a2", "mismatch"}},
		"late":                 {{0, begin, "a1", "started"}, {50, finish, "a1", "true"}, {149, begin, "b1", "replay 201"}, {150, begin, "b1", "started"}},
		"too late":             {{0, begin, "a1", "started"}, {10, begin, "b1", "started"}, {11, finish, "a1", "false"}, {12, abandon, "a1", "false"}, {13, finish, "b1", "true"}, {14, finish, "a1", "false"}},
		"twice":                {{0, begin, "a1", "started"}, {1, finish, "a1", "true"}, {50, finish, "a1", "true"}, {100, begin, "b1", "replay 201"}, {101, begin, "b1", "started"}},
		"given up":             {{0, begin, "a1", "started"}, {1, abandon, "a1", "true"}, {1, abandon, "a1", "false"}, {1, begin, "b2", "started"}, {2, abandon, "a1", "false"}},
		"not given up":         {{0, begin, "a1", "started"}, {1, finish, "a1", "true"}, {2, abandon, "a1", "false"}, {2, begin, "b1", "replay 201"}},
		"before 1970":          {{-50, begin, "a1", "started"}, {-41, begin, "b1", "in flight 1"}, {-40, begin, "b1", "started"}},
	} {
		t.Run(name, func(t *testing.T) {
			terms := idempotency.Terms{Lease: 10, Keep: 100}
			var record idempotency.Record
			for i, step := range steps {
				lease := idempotency.Lease{Token: idempotency.Token{step.lease[0]}, Body: idempotency.Fingerprint{step.lease[1]}}
				var got string
				switch step.does {
				case begin:
					var o idempotency.Outcome
					record, o = record.Begin(lease, step.now, terms)
					got = spell(o)
				case finish:
					var kept bool
					record, kept = record.Finish(lease, idempotency.Answer{Status: 201}, step.now, terms)
					got = fmt.Sprint(kept)
				case abandon:
					var freed bool
					record, freed = record.Abandon(lease, step.now)
					got = fmt.Sprint(freed)
				}
				if got != step.want {
					t.Fatalf("step %d, %s %s at %d: %s, want %s", i, step.does, step.lease, step.now, got, step.want)
				}
			}
		})
	}
}

func spell(o idempotency.Outcome) string {
	switch o.State {
	case idempotency.InFlight:
		return fmt.Sprint("in flight ", o.RetryAfter)
	case idempotency.Replay:
		return fmt.Sprint("replay ", o.Answer.Status)
	}
	return o.State.String()
}

func TestTerms(t *testing.T) {
	const year = 366 * 24 * 60 * 60 * 1000
	for terms, want := range map[idempotency.Terms]error{
		idempotency.DefaultTerms(): nil,
		{Lease: 1, Keep: 1}:        nil,
		{Lease: year, Keep: year}:  nil,
		{}:                         idempotency.ErrTerms,
		{Lease: 0, Keep: 1}:        idempotency.ErrTerms,
		{Lease: 1, Keep: 0}:        idempotency.ErrTerms,
		{Lease: -1, Keep: 1}:       idempotency.ErrTerms,
		{Lease: 1, Keep: year + 1}: idempotency.ErrTerms,
		{Lease: year + 1, Keep: 1}: idempotency.ErrTerms,
	} {
		if err := terms.Check(); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", terms, err, want)
		}
	}
}

func TestStateNames(t *testing.T) {
	got := fmt.Sprint(idempotency.InFlight, idempotency.Started, idempotency.Replay, idempotency.Mismatch, idempotency.State(4), idempotency.State(-1))
	if want := "in flight started replay mismatch state 4 state -1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTokensDiffer(t *testing.T) {
	seen := map[idempotency.Token]bool{{}: true}
	for range 1000 {
		token := idempotency.NewToken()
		if seen[token] {
			t.Fatalf("%x came up before", token)
		}
		seen[token] = true
	}
}
