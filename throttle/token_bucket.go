package throttle

// TokenBucket holds as many tokens as its burst. Each send takes one, and they come back
// evenly at the tier's rate: with minute=60/60s one a second.
//
//	admits  while a whole token is left
//	waits   until the missing part of a token has come back, at limit tokens in a window
//
// In any period it admits at most the burst and what comes back in that period. The burst can
// be used at once, at any time.
//
// Release returns the whole token of the newest send. Of an earlier send it returns only what
// the rate cannot have returned by the time of the newest, so a release never makes room for
// more than the limit.
//
// Record takes a token at the send's own time, or at the time of the latest send on record if
// that is later. Where less than a token is left, it takes that, if any. A send changes nothing if an
// empty bucket would have filled since. Record the oldest send first.
//
// The state is 16 bytes: 8 of the latest moment and 8 of the tokens that were missing then. They
// are counted in parts, as many to a token as the window has milliseconds. So limit parts come
// back in each millisecond, and every step is in whole numbers.
type TokenBucket struct{ bucket }

// NewTokenBucket checks the parameters; a burst of 0 is the tier's limit.
func NewTokenBucket(t Tier, burst int) (TokenBucket, error) {
	if burst == 0 {
		burst = t.Limit
	}
	b, err := newBucket("bucket", t, burst)
	return TokenBucket{b}, err
}
