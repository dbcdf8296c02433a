package throttle

import (
	"context"
	"errors"
	"fmt"
)

// Home keeps the states of keys, all of one form, and takes one step at a time on each. A Home on
// a new kind of store is Do; what a [Limiter] promises beyond it is written once, there.
type Home interface {
	// Do takes a step on the state of a key. After an error the step may have been taken, unless
	// the error is [ErrUnchanged].
	Do(ctx context.Context, key string, op Op) (Reply, error)
}

// Step is what an Op does.
type Step string

// The steps.
const (
	StepTake    Step = "take"
	StepPeek    Step = "peek"
	StepRecall  Step = "recall" // a peek that only a remembered refusal answers; the store is not asked
	StepRelease Step = "release"
	StepRecord  Step = "record"
	StepReset   Step = "reset"
)

// Op is one step of an algorithm on the state of a key.
type Op struct {
	Step Step
	By   Algorithm
	// All are the admissions to record, oldest first. A take and a release have one; a take ignores its time.
	All []Admission
}

// Repeatable reports whether the step may be taken again where it may have been taken before: all
// but those of a counter that charge or refund.
func (op Op) Repeatable() bool { return op.By.Exact() || op.Step == StepPeek || op.Step == StepReset }

// Take decides a StepTake by the state of its key and the home's clock.
func (op Op) Take(state []byte, now int64) (next []byte, v Verdict) {
	return op.By.Take(state, Admission{ID: op.All[0].ID, At: now})
}

// Apply takes the step on a state, for a home in this process. A step that is not done changes
// nothing.
func (op Op) Apply(state []byte, now int64) (next []byte, r Reply) {
	r = Reply{State: state, Now: now}
	switch next = state; op.Step {
	case StepTake:
		r.verdict = new(Verdict)
		next, *r.verdict = op.Take(state, now)
		r.Done = r.verdict.Allowed
	case StepRelease:
		next, r.Done = op.By.Release(state, op.All[0])
	case StepRecord:
		for _, a := range op.All {
			next = op.By.Record(next, a, now)
		}
		r.Done = true
	case StepReset:
		next, r.Done = nil, state != nil
	}
	return next, r
}

// Reply is what came of an Op. With the pure algorithm it says all that a caller may ask.
type Reply struct {
	State      []byte // before the step; nil if there was none
	Now        int64  // the home's clock
	Done       bool   // the step was done, now or before
	Degraded   bool   // this node decided by its own records
	Remembered bool   // the step is refused by a state that the home remembers; the store was not asked

	verdict *Verdict // of a take that was decided in this process
}

// Peek reports what a Take by an algorithm would answer on this record.
func (r Reply) Peek(by Algorithm) Verdict {
	v := by.Peek(r.State, r.Now)
	v.Degraded = r.Degraded
	return v
}

var (
	// ErrUnavailable is the kind of every failure to read or write records.
	ErrUnavailable = errors.New("the records are unavailable")
	// ErrUnchanged accompanies ErrUnavailable where certainly nothing was recorded, such as
	// without a connection.
	ErrUnchanged = errors.New("nothing was recorded")
	// ErrLimiter is the kind of a Limiter that New and With did not make.
	ErrLimiter = errors.New("the limiter was not made by throttle.New, or was changed")
	// ErrKey is the kind of a key that is empty or too long.
	ErrKey = errors.New("a key is 1 to 1024 bytes long")
	// ErrID is the kind of an id that NewID or ParseID did not make.
	ErrID = errors.New("an id is eight characters of A-Z, a-z, 0-9, - and _")
)

// errReply means that a home did not take the step that its state and clock ask for.
var errReply = errors.New("the home's reply contradicts its state")

// maxKey is the longest key, in bytes.
const maxKey = 1024

// CheckKey returns ErrKey for a key that no limiter accepts.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey {
		return ErrKey
	}
	return nil
}

// Unavailable wraps the cause of a failed call as ErrUnavailable, and says what was being done.
func Unavailable(doing string, cause error) error {
	if errors.Is(cause, ErrUnavailable) {
		return fmt.Errorf("%s: %w", doing, cause)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, cause)
}
