package cache

import (
	"bytes"
	"math"
	"testing"
	"time"
)

// Whatever is on disk, an expiry is an error or is read as it would be written.
func FuzzExpiry(f *testing.F) {
	for _, expires := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		f.Add(append(appendExpiry(nil, expires), "value"...))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 12))
	f.Fuzz(func(t *testing.T, b []byte) {
		expires, value, err := cutExpiry(b)
		if err != nil {
			return
		}
		again, rest, err := cutExpiry(append(appendExpiry(nil, expires), value...))
		if again != expires || !bytes.Equal(rest, value) || err != nil {
			t.Fatalf("%d %x became %d %x, %v", expires, value, again, rest, err)
		}
	})
}

func TestForgetAt(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, tc := range []struct {
		ttl  int64
		want uint64
	}{
		{math.MinInt64, 1_800_000_000 + 3600},
		{-1, 1_800_000_000 + 3600},
		{0, 1_800_000_000 + 3600},
		{1999, 1_800_000_001 + 3600},
		{86_400_000, 1_800_086_400 + 3600},
		{200 * 366 * 86_400_000, 0},
		{math.MaxInt64, 0},
	} {
		if got := forgetAt(now, tc.ttl); got != tc.want {
			t.Errorf("ttl %d: %d, want %d", tc.ttl, got, tc.want)
		}
	}
	if got := forgetAt(time.Unix(-5, 0), 1000); got != 3601 {
		t.Errorf("a machine that thinks it is 1969: %d", got)
	}
}
