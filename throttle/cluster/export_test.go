package cluster

import "github.com/mailgate/mailgate/throttle"

// SetServersBack has the limiter take the clock of a key's server for one that is so much earlier.
func SetServersBack(l *throttle.Limiter, key string, ms int64) {
	h := l.Home.(*home)
	h.clocks.of(h.prefix + key + "}").Add(-ms)
}
