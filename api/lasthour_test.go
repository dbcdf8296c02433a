package api_test

import (
	"fmt"
	"slices"
	"testing"
)

// A burst counts in full from its first second, for one minute, and stays in the last hour.
func TestFigures_Burst_CountsForAMinuteAndShowsForAnHour(t *testing.T) {
	r := newRig(t, setup{})
	r.now.Store(1_800_000_010_000)
	const burst = 30
	for i := range burst {
		r.send(fmt.Sprintf("a%d@example.com", i)).is(t, 200, "")
	}
	r.send("a0@example.com").is(t, 429, "quota-exceeded")
	chart := func() (sent, refused []any) {
		hour := r.do("GET", "/admin/figures", opsKey, "").body["last_hour"].(map[string]any)
		return hour["sent"].([]any), hour["refused"].([]any)
	}
	for _, tt := range []struct {
		passed     int64 // milliseconds since the burst
		sent, peak float64
	}{{0, burst, burst}, {59_000, burst, burst}, {60_000, 0, burst}, {3_590_000, 0, burst}, {3_700_000, 0, 0}} {
		r.now.Store(1_800_000_010_000 + tt.passed)
		sent, refused := chart()
		if got := sent[len(sent)-1]; got != tt.sent || len(sent) != 181 || len(refused) != 181 {
			t.Errorf("%d ms later: %v sent in the last minute, want %v; %d and %d points", tt.passed, got, tt.sent, len(sent), len(refused))
		}
		if has := slices.Contains(sent, any(tt.peak)) && slices.Contains(refused, any(min(1, tt.peak))); !has {
			t.Errorf("%d ms later: no point of the last hour is %v", tt.passed, tt.peak)
		}
	}
}
