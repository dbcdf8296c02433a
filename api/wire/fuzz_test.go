package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/mailgate/mailgate/api/wire"
)

// A wait in seconds is never shorter than the one in milliseconds, nor by a second
// longer, and any moment is a JSON string.
func FuzzSeconds(f *testing.F) {
	for _, ms := range []int64{0, 1, 999, 1000, 1001, 1<<53 - 1, 1<<63 - 1, -1, -1 << 63} {
		f.Add(ms)
	}
	f.Fuzz(func(t *testing.T, ms int64) {
		if text := wire.Encode(wire.Time(ms)); !json.Valid(text) {
			t.Fatalf("%d is %s", ms, text)
		}
		if ms < 0 {
			return // no wait is so long
		}
		seconds := wire.Seconds(ms)
		if seconds < ms/1000 || seconds > ms/1000+1 || seconds == ms/1000 && ms%1000 != 0 {
			t.Fatalf("%d ms are %d s", ms, seconds)
		}
	})
}
