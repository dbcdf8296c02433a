package cluster

// ByClock has a memory reckon the time that passes from a test's clock.
func ByClock(m *Memory, now func() int64) { m.since = func() int64 { return now() * 1000 } }
