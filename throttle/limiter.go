package throttle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Limiter counts sends by key and admits them within a limit: an [Algorithm] decides, and a [Home]
// keeps the records. A key is any text of 1 to 1024 bytes that identifies what is counted: a
// mailbox, a network address, a caller. Methods may be called from any number of goroutines.
//
// New and With make a Limiter. Its fields are to be read: one that was made in another way, that has no home, or whose
// algorithm now has another form, answers each call with [ErrLimiter].
//
// An error means that there is no answer, and never counts as an admission. It is [ErrUnavailable]
// when the records could not be read or written in time. A Take that failed may have been recorded.
type Limiter struct {
	Algorithm Algorithm
	Home      Home

	form string // of the records
}

// New returns a limiter over the records of a home. It panics if the algorithm was not made by a
// constructor.
func New(a Algorithm, h Home) *Limiter {
	if a == nil || a.Form() == "" {
		panic(fmt.Sprintf("throttle: the algorithm %T is a zero value", a))
	}
	return &Limiter{a, h, a.Form()}
}

// With returns a limiter by another algorithm on the same records, for example for a plan, or with
// a stricter limit for some callers. It panics if the algorithms differ in form.
//
// Give both the same windows and rates: each write forgets what has left the longest window of the
// limiter that wrote.
func (l *Limiter) With(a Algorithm) *Limiter {
	if a == nil || a.Form() == "" || a.Form() != l.form {
		panic(fmt.Sprintf("throttle: a %T cannot read the records of %v", a, l.Algorithm))
	}
	return &Limiter{a, l.Home, l.form}
}

// Take charges one send and records it, or refuses it and changes nothing.
func (l *Limiter) Take(ctx context.Context, key string) (Verdict, error) {
	return l.TakeID(ctx, key, NewID())
}

// TakeID is Take under an id of the caller's. A [Policy] does not charge an id again that is on
// record, so the call may be repeated after an error. A counter keeps no ids and charges each call.
func (l *Limiter) TakeID(ctx context.Context, key string, id ID) (Verdict, error) {
	v, _, err := l.Charge(ctx, key, id)
	return v, err
}

// Charge is TakeID that returns the record before it as well.
func (l *Limiter) Charge(ctx context.Context, key string, id ID) (Verdict, Reply, error) {
	r, err := l.do(ctx, key, StepTake, Admission{ID: id})
	if err != nil {
		return Verdict{}, r, err
	}
	v := r.verdict
	if v == nil {
		v = new(Verdict)
		_, *v = l.Algorithm.Take(r.State, Admission{ID: id, At: r.Now})
	}
	if v.Allowed != r.Done {
		return Verdict{}, Reply{}, Unavailable("take", errReply)
	}
	v.Degraded = r.Degraded
	return *v, r, nil
}

// Peek reports what Take would answer, and records nothing.
func (l *Limiter) Peek(ctx context.Context, key string) (Verdict, error) {
	r, err := l.do(ctx, key, StepPeek)
	if err != nil {
		return Verdict{}, err
	}
	return r.Peek(l.Algorithm), nil
}

// Look is Peek that returns the record: what other limits say of it, or the same at a later time, needs no further call.
func (l *Limiter) Look(ctx context.Context, key string) (Reply, error) {
	return l.do(ctx, key, StepPeek)
}

// Recall reports whether the home remembers that the next send is refused, and Peek's verdict if so. No
// store is asked.
func (l *Limiter) Recall(ctx context.Context, key string) (v Verdict, refused bool) {
	r, err := l.do(ctx, key, StepRecall)
	if err != nil || !r.Remembered {
		return v, false
	}
	return r.Peek(l.Algorithm), true
}

// Release refunds an admission whose send certainly never happened, and reports whether there was
// one to refund. A Policy finds the admission by its id, so Release may be repeated. A counter takes
// one off the count at its time: call Release once for each admission, and do not repeat it after an
// error.
func (l *Limiter) Release(ctx context.Context, key string, a Admission) (released bool, err error) {
	r, err := l.do(ctx, key, StepRelease, a)
	return r.Done, err
}

// Reset forgets the key and reports how many sends it forgot.
func (l *Limiter) Reset(ctx context.Context, key string) (cleared int, err error) {
	r, err := l.do(ctx, key, StepReset)
	if err != nil {
		return 0, err
	}
	return l.Algorithm.Peek(r.State, r.Now).Sent, nil
}

// Record adds admissions that were made elsewhere in one step, each at its own time, even beyond the
// limit. A Policy ignores ids that are on record; a counter counts each again.
func (l *Limiter) Record(ctx context.Context, key string, all ...Admission) error {
	all = slices.DeleteFunc(slices.Clone(all), func(a Admission) bool { return a.At < 0 })
	slices.SortStableFunc(all, func(a, b Admission) int { return cmp.Compare(a.At, b.At) })
	_, err := l.do(ctx, key, StepRecord, all...)
	return err
}

// History returns the sends of a key inside the longest window, oldest first. A counter keeps none:
// the error is errors.ErrUnsupported.
func (l *Limiter) History(ctx context.Context, key string) (History, error) {
	policy, ok := l.Algorithm.(Policy)
	if !ok && l.check() == nil {
		return nil, fmt.Errorf("history of a %s: %w", l.Algorithm, errors.ErrUnsupported)
	}
	r, err := l.do(ctx, key, StepPeek)
	if err != nil {
		return nil, err
	}
	return policy.History(r.State, r.Now), nil
}

// check returns ErrLimiter for what New and With do not make: a zero Policy would admit everything, and
// another form would misread the records.
func (l *Limiter) check() error {
	if l.form == "" || l.Home == nil || l.Algorithm == nil || l.Algorithm.Form() != l.form {
		return ErrLimiter
	}
	return nil
}

// do checks what a caller can get wrong, and asks the home. What was never charged may be released.
func (l *Limiter) do(ctx context.Context, key string, step Step, all ...Admission) (r Reply, err error) {
	err = cmp.Or(l.check(), CheckKey(key))
	for _, one := range all {
		if err == nil && step != StepRelease && !one.ID.Valid() {
			err = ErrID // which does not fit a record
		}
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", step, err)
	}
	if err = ctx.Err(); err == nil && (step != StepRecord || len(all) > 0) {
		r, err = l.Home.Do(ctx, key, Op{step, l.Algorithm, all})
	}
	if err != nil {
		return Reply{}, Unavailable(string(step), err)
	}
	return r, nil
}
