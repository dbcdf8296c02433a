package meter

import (
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// A TokenBucket holds a number of tokens, the burst. Each send takes one, and they come
// back at the tier's rate, evenly: with minute=60/60s one a second. They are counted
// when somebody asks, so a key costs nothing while nobody does.
type TokenBucket struct{ *bucket }

// NewTokenBucket checks the numbers; a burst of 0 is the tier's limit.
func NewTokenBucket(t throttle.Tier, burst int) (TokenBucket, error) {
	if burst == 0 {
		burst = t.Limit
	}
	b, err := newBucket(t, burst)
	return TokenBucket{b}, err
}

// Look implements Meter.
func (m TokenBucket) Look(s *State, now int64) Reading { return m.look(s, now) }

// Take implements Meter.
func (m TokenBucket) Take(s *State, id throttle.ID, now int64) (r Reading, changed bool) {
	return m.take(s, id, now)
}

// Count implements Meter.
func (m TokenBucket) Count(s *State, now int64) Reading { return m.count(s, now) }

// Reserving implements Meter.
func (m TokenBucket) Reserving(n int) (Meter, error) {
	b, err := m.reserving(n)
	if err != nil {
		return nil, err
	}
	return TokenBucket{b}, nil
}

// Form implements Meter.
func (m TokenBucket) Form() string { return fmt.Sprintf("bucket-%d", m.tier.Window) }

// String implements Meter.
func (m TokenBucket) String() string {
	if !m.made() {
		return nothing
	}
	return fmt.Sprintf("token-bucket %s, bursts of %d", m.tier, m.room)
}
