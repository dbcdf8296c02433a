package cache

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
)

// One line when there is no room any more, with its cause, and one when there has been some
// for a while, however often it is asked and however it comes and goes.
func TestRoomIsLogged(t *testing.T) {
	const plenty = math.MaxInt64
	var text bytes.Buffer
	free := space{plenty, plenty}
	r := newRoom(t.TempDir(), slog.New(slog.NewTextHandler(&text, nil)))
	r.free = func() (space, error) { return free, nil }
	now := time.Now()
	for i, step := range []struct {
		after time.Duration
		free  int64
		want  string
	}{
		{0, plenty, ""},
		{time.Hour, plenty, ""},
		{time.Second, 5 << 20, `level=WARN msg="the data directory takes no writes" cause="the disk is full: 5 MB free, 36 MB needed"`},
		{time.Second, 4 << 20, ""},
		{time.Hour, plenty, ""},
		{roomCalm - 1, 5 << 20, ""},
		{time.Hour, plenty, ""},
		{-time.Hour, plenty, ""}, // the clock was set back
		{roomCalm - 1, plenty, ""},
		{1, plenty, `level=INFO msg="the data directory takes writes again"`},
		{time.Hour, plenty, ""},
		{time.Second, 0, `level=WARN msg="the data directory takes no writes" cause="the disk is full: 0 MB free, 36 MB needed"`},
	} {
		text.Reset()
		now, free.bytes = now.Add(step.after), step.free
		r.checked.Store(0) // a look counts for some milliseconds
		_ = r.check(now)
		_, got, _ := strings.Cut(strings.TrimSpace(text.String()), " ") // behind the time
		if got != step.want {
			t.Errorf("step %d: it says %q, want %q", i, got, step.want)
		}
	}
}
