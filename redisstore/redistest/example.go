package redistest

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// ForExample starts a server for an Example function, which has no test that it could end
// with: stop ends it. What cannot be done is a panic with a plain sentence.
func ForExample() (s *Server, stop func()) {
	t := &example{}
	return Alone(t), t.end
}

// An example is as much of a test as a server needs.
type example struct {
	testing.TB
	cleanups []func()
}

func (t *example) end() {
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup()
	}
}

// Cleanup implements testing.TB, and so do the others.
func (t *example) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// Helper has nothing to do.
func (t *example) Helper() {}

// TempDir goes with the server.
func (t *example) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Fatal panics, as Fatalf and Errorf do.
func (t *example) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf panics.
func (t *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Errorf panics.
func (t *example) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
