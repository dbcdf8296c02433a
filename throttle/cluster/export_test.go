package cluster

import "github.com/mailgate/mailgate/throttle"

// SetServersBack has the limiter take the clock of a key's server for one that is so much earlier.
func SetServersBack(l *throttle.Limiter, key string, ms int64) {
	h := l.Home.(*home)
	h.clockOf(h.prefix + key + "}").Add(-ms * 1000)
}

// ByClock has a memory reckon the time that passes from a test's clock.
func ByClock(m *Memory, now func() int64) { m.since = func() int64 { return now() * 1000 } }
