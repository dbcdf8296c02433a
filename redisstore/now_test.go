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
		if got := s.Now(); got < want-2 || got > want+10_000 {
			t.Errorf("%s: %d, want %d and a moment", what, got, want)
		}
	}
	near("unheard", time.Now().UnixMilli())
	year := int64(366 * 24 * time.Hour / time.Millisecond)
	for _, heard := range []int64{time.Now().UnixMilli() - year, time.Now().UnixMilli() + year} {
		s.servers.learn("key", s.servers.here(), s.servers.here(), heard)
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

// Whatever an answer took, the clock is never ahead of the server's, and behind it by no
// more than the quickest answer was late, and a millisecond. Of a server that differs it may
// be ahead by less than its answer took.
func TestNowIsNotAhead(t *testing.T) {
	c := newServerClocks()
	const ahead = 1_800_000_000_000
	for _, answer := range []struct{ sent, read, received, behind int64 }{
		{0, 240, 250, 11},     // long on its way there
		{300, 305, 540, 11},   // long on its way back
		{600, 601, 602, 2},    // quick
		{700, 940, 949, 2},    // slow once more
		{1000, 1000, 1240, 2}, // and again
	} {
		c.learn("key", answer.sent, answer.received, answer.read+ahead)
		now, heard := c.at(answer.received)
		if behind := answer.received + ahead - now; !heard || behind != answer.behind {
			t.Errorf("after %+v: behind by %d", answer, behind)
		}
		if there, _ := c.there("key", answer.received); there < answer.received+ahead {
			t.Errorf("after %+v: what is sent has %d ms too few", answer, answer.received+ahead-there)
		}
	}
	const set = -3_600_000 // somebody sets the server's clock back
	c.learn("key", 2000, 2010, 2005+ahead+set)
	if now, _ := c.at(2010); now != 2004+ahead+set {
		t.Errorf("set back: %d ahead", now-(2010+ahead+set))
	}
	const behind = 150 // another server, and its answer takes longer
	c.learn("key", 3000, 3200, 3190+ahead+set-behind)
	if now, _ := c.at(3200); now-(3200+ahead+set-behind) != behind-6 {
		t.Errorf("after a slow answer: %d ahead", now-(3200+ahead+set-behind))
	}
	c.learn("key", 4000, 4010, 4005+ahead+set-behind)
	if now, _ := c.at(4010); now > 4010+ahead+set-behind {
		t.Errorf("after a quick one: %d ahead", now-(4010+ahead+set-behind))
	}
}
