package cluster

import "github.com/mailgate/mailgate/throttle"

// SetServersBack has the limiter take the clock of a key's server for one that is so much earlier.
func SetServersBack(l *throttle.Limiter, key string, ms int64) {
	h := l.Home.(*home)
	h.clocks.of(h.clocks.masterOf(h.prefix + key + "}")).most.Add(-ms * 1000)
}

// ByClock has a limiter reckon the server's clock from a test's, in place of the time since began.
func ByClock(l *throttle.Limiter, now func() int64) {
	l.Home.(*home).clocks.since = func() int64 { return now()*1000 - 1000 } // 0 ahead is not known
}
