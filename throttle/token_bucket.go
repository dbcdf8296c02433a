package throttle

// TokenBucket holds as many tokens as its burst. Each send takes one, and they come back
// evenly at the tier's rate: with minute=60/60s one a second.
//
//	admits  while a whole token is left
//	waits   until the missing part of a token has come back, at limit tokens in a window
//
// In any stretch of time never more than the burst and what comes back in it, so up to the
// burst at once, also at the end of a window.
//
// Release refunds what cannot have come back by itself before a later send: a send that
// none came after is refunded in full, and of an earlier one the part of a token that the
// rate does not return between the two. So it never admits more than was promised.
//
// Record takes a token at the send's own time, where no later send is on record, and else at
// the time of the latest; never more than there are. A send that is older than a whole bucket
// takes to fill changes nothing. Sends that are recorded together should be oldest first.
//
// The state is 16 bytes: 8 of the latest moment and 8 of the tokens that were missing then,
// in parts of a token: one has as many parts as the window has milliseconds, so that limit
// parts come back in each millisecond and every step is in whole numbers.
type TokenBucket struct{ bucket }

// NewTokenBucket checks the parameters; a burst of 0 is the tier's limit.
func NewTokenBucket(t Tier, burst int) (TokenBucket, error) {
	if burst == 0 {
		burst = t.Limit
	}
	b, err := newBucket(t, burst)
	return TokenBucket{b}, err
}
