// Package keyed is the small store under package verify and package idempotency: one value
// for each key, changed by one pure step at a time.
package keyed

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// Step makes the next value of a key from the old one at a moment in milliseconds since
// 1970. It is pure, may be called more than once for one Update, and does not modify old. A
// nil old is a key without a value, a nil next removes it, and a next that equals old changes
// nothing, its expiry included. The value is forgotten at expires, and at once if that is not
// after now.
type Step func(old []byte, now int64) (next []byte, expires int64)

// Store keeps one value for each key. An error is throttle.ErrUnavailable and names no key:
// the step may or may not have been taken.
type Store interface {
	// Update takes the step, with no other step on the key in between. The last call of
	// step is the one that counts. degraded reports that this node decided by its own records,
	// because the shared ones are away.
	Update(ctx context.Context, key string, step Step) (degraded bool, err error)
}

// DamagedLife is for how many milliseconds a value stays that cannot be parsed: without it a
// request could be done twice.
const DamagedLife = 24 * 60 * 60 * 1000

// Change updates a value that is parsed. If it cannot be parsed, it is kept and the error is
// throttle.ErrUnavailable.
func Change[T any](ctx context.Context, s Store, key string, parse func([]byte) (T, error), step func(old T, now int64) (next []byte, expires int64)) (degraded bool, err error) {
	var damaged error
	degraded, err = s.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		var value T
		if value, damaged = parse(old); damaged != nil {
			return old, now + DamagedLife
		}
		return step(value, now)
	})
	if err == nil && damaged != nil {
		err = fmt.Errorf("%w: %w", throttle.ErrUnavailable, damaged)
	}
	return degraded, err
}
