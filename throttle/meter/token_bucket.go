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

// Release implements Meter.
func (m TokenBucket) Release(s *State, id throttle.ID, now int64) bool { return m.release(s, id, now) }

// Used implements Meter: it is how many tokens are missing, a part of one included.
func (m TokenBucket) Used(s *State, now int64) int { return m.used(s, now) }

// Expires implements Meter: it is when all tokens are back.
func (m TokenBucket) Expires(s *State) int64 { return m.expires(s) }

// Tier implements Meter.
func (m TokenBucket) Tier() throttle.Tier { return m.tier }

// Quota implements Meter.
func (m TokenBucket) Quota() throttle.Tier { return m.quota() }

// Room is how many sends the bucket has room for: the burst.
func (m TokenBucket) Room() int { return m.room }

// Held is how many admissions a state remembers at most.
func (m TokenBucket) Held() int { return m.held }

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
