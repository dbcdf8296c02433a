package redistest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/internal/need"
)

// ForExample starts a server for an Example function, which has no test that the server could
// end with: stop ends it. A failure is a panic.
func ForExample() (s *Server, stop func()) {
	t := &example{}
	return Alone(t), t.end
}

// SkipExamples leaves the examples of a package out where there is no Redis, as an example
// cannot skip itself. TestMain calls it before it runs the tests.
func SkipExamples() {
	if _, found := need.Find("redis-server"); !found && os.Getenv("MAILGATE_TEST_ALL") != "1" {
		fmt.Println("redis-server is missing: the examples are skipped")
		_ = flag.Set("test.skip", "^Example") // the flag exists in every test
	}
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
func (t *example) Skip(args ...any)                  { panic(fmt.Sprint(args...)) }
func (t *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *example) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
