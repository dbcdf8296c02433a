package mailtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/need"
)

// recorder is a testing.TB that keeps what a failing test would have said.
type recorder struct {
	testing.TB
	said     string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatal(args ...any) {
	r.said = fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// failing runs what must fail its test, and gives what it said.
func failing(t *testing.T, body func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	for _, cleanup := range r.cleanups {
		cleanup()
	}
	if r.said == "" {
		t.Fatal("that should have failed the test")
	}
	return r.said
}

func TestStart_BrokenSettings_SaysWhatIsWrong(t *testing.T) {
	need.Program(t, "exim4")
	said := failing(t, func(tb testing.TB) {
		Start(tb, Options{Refuse: []Refusal{{At: "RCPT", Domain: "x.example\n  no such condition = y", Reply: "550 5.1.1 No"}}})
	})
	if !strings.Contains(said, "ended at its start") || !strings.Contains(said, `"no such condition`) {
		t.Errorf("with broken settings it says %q", said)
	}
}
