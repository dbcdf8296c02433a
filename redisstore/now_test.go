package redisstore

import (
	"testing"
	"time"
)

// The servers' clock goes on from what was last heard, by the time since this process
// began; before, it is this machine's; and a test's goes before both.
func TestNow(t *testing.T) {
	s := &Store{servers: newServerClocks()}
	near := func(what string, want int64) {
		t.Helper()
		if got := s.Now(); got < want || got > want+10_000 {
			t.Errorf("%s: %d, want %d and a moment", what, got, want)
		}
	}
	near("unheard", time.Now().UnixMilli())
	year := int64(366 * 24 * time.Hour / time.Millisecond)
	for _, heard := range []int64{time.Now().UnixMilli() - year, time.Now().UnixMilli() + year} {
		s.servers.learn("key", s.servers.here(), heard)
		near("heard", heard)
		s.servers.began = s.servers.began.Add(-time.Hour)
		near("an hour later", heard+3_600_000)
		s.servers.began = s.servers.began.Add(time.Hour)
	}
	s.clock = func() int64 { return 42 }
	if got := s.Now(); got != 42 {
		t.Errorf("a test's clock says %d", got)
	}
}
