package redistest

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// ForExample starts a server for an Example function, which has no test that the server could
// end with: stop ends it. A failure is a panic.
func ForExample() (s *Server, stop func()) {
	t := &example{}
	return Alone(t), t.end
}

// example is as much of a test as a server needs.
type example struct {
	testing.TB
	cleanups []func()
}

func (t *example) end() {
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup()
	}
}

func (t *example) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *example) Helper()                           {}
func (t *example) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (t *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *example) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
