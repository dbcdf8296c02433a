package need

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// recorder is a testing.TB that keeps how its test ends.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper()           {}
func (r *recorder) Skip(args ...any)  { r.stop("skipped: " + fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any) { r.stop("failed: " + fmt.Sprint(args...)) }

func (r *recorder) stop(end string) {
	r.end = end
	runtime.Goexit()
}

func TestProgram_Missing_SkipsOrFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "redis-server"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	const missing = "node is missing: install the Debian package nodejs or run make test"
	tests := []struct{ all, program, path, end string }{
		{"", "redis-server", filepath.Join(dir, "redis-server"), ""},
		{"1", "redis-server", filepath.Join(dir, "redis-server"), ""},
		{"", "node", "", "skipped: " + missing},
		{"1", "node", "", "failed: " + missing},
	}
	for _, tt := range tests {
		t.Setenv("MAILGATE_TEST_ALL", tt.all)
		r, path, done := &recorder{TB: t}, "", make(chan struct{})
		go func() {
			defer close(done)
			path = Program(r, tt.program)
		}()
		<-done
		if path != tt.path || r.end != tt.end {
			t.Errorf("MAILGATE_TEST_ALL=%q, %s: path %q, %q; want %q, %q", tt.all, tt.program, path, r.end, tt.path, tt.end)
		}
	}
}
