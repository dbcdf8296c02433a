package local

import "github.com/mailgate/mailgate/throttle"

// Remembers reports whether a limiter has in memory what it knows of a key.
func Remembers(limiter throttle.Limiter, key string) (found bool) {
	switch l := limiter.(type) {
	case *Limiter:
		_, found = l.histories.recall(l.part(key), key, l.now())
	case *metered:
		_, found = l.states.recall(l.part, key, l.now())
	}
	return found
}
