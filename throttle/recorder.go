package throttle

import "context"

// A Recorder is a Limiter that can take up what was admitted elsewhere, such as by a
// process that went on alone while it could not reach the others.
type Recorder interface {
	Limiter

	// Record puts an admission on record at its own time, whether or not the limit
	// admits it: the send has been made. So more sends can be on record than a limit
	// admits, and then nothing remains until enough of them have left.
	//
	// An id that is on record changes nothing, at whatever time, so a Record that failed
	// is safe to repeat. After a Release, or a Reset, the id is on record no more: who
	// repeats a Record then puts it there anew.
	//
	// What has left the longest window is not recorded, and counts as done. A time that is
	// ahead of the clock counts as the clock, so nothing on record is made old by it. An id
	// that is not Valid is ErrID.
	//
	// A meter keeps counts, and of each send only as much as package meter's documentation
	// says. In a bucket what finds it full is not counted, as full is full; and in a queue it has
	// a place like any other, though its mail has left, and an earlier Take of its id tells that
	// place's turn.
	Record(ctx context.Context, key string, a Admission) error
}

// CheckRecord is what every Record checks of its arguments, with [CheckCall].
func CheckRecord(ctx context.Context, key string, a Admission) error {
	if !a.ID.Valid() {
		return WrongID("record")
	}
	return CheckCall(ctx, "record", key)
}
