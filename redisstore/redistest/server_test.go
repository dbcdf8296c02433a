package redistest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

// recorder is a testing.TB that keeps what a failing test would have said.
type recorder struct {
	testing.TB
	dir  string
	said string
}

func (r *recorder) Helper()        {}
func (r *recorder) Cleanup(func()) {}
func (r *recorder) TempDir() string {
	return r.dir
}
func (r *recorder) Fatal(args ...any) {
	r.said = fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// failing runs what must fail its test, and gives what it said.
func failing(t *testing.T, body func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t, dir: t.TempDir()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	if r.said == "" {
		t.Fatal("that should have failed the test")
	}
	return r.said
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// What a server keeps over its end depends on how it ended and on its settings.
func TestRestart(t *testing.T) {
	for _, test := range []struct {
		name   string
		config []string
		end    func(*Server)
		keeps  bool
	}{
		{"killed, nothing on disk", nil, (*Server).Kill, false},
		{"stopped, nothing on disk", nil, (*Server).Stop, false},
		{"killed, every write synced", []string{"appendonly yes", "appendfsync always"}, (*Server).Kill, true},
		{"stopped, snapshots on", []string{"save 3600 1"}, (*Server).Stop, true},
		{"killed, snapshots on", []string{"save 3600 1"}, (*Server).Kill, false},
		{"stopped while paused, snapshots on", []string{"save 3600 1"}, func(s *Server) { s.Pause(); s.Stop() }, true},
		{"restarted without an end, snapshots on", []string{"save 3600 1"}, func(*Server) {}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := Alone(t, test.config...)
			before := server.Addr
			ctx := deadline(t, 30*time.Second)
			if err := server.Client().Set(ctx, "key", "kept", 0).Err(); err != nil {
				t.Fatal(err)
			}
			test.end(server)
			server.Restart()
			kept := server.Client().Exists(ctx, "key").Val() == 1
			if kept != test.keeps || server.Addr != before || !server.Running() {
				t.Errorf("kept %v, want %v; at %s, was at %s", kept, test.keeps, server.Addr, before)
			}
		})
	}
}

func TestPauseIsSilenceAndResumeCarriesOut(t *testing.T) {
	server := Alone(t)
	for range 10 { // each pause must have taken effect when it returns
		// A connection that is past its greeting, so that only the command waits.
		if err := server.Client().Ping(deadline(t, 5*time.Second)).Err(); err != nil {
			t.Fatal(err)
		}
		server.Pause()
		err := server.Client().Incr(deadline(t, 200*time.Millisecond), "count").Err()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a paused server lets a command end with %v", err)
		}
		server.Resume()
	}
	servertest.Await(t, "the commands sent during the pauses", 5*time.Second, func() error {
		if n := server.Client().Get(t.Context(), "count").Val(); n != "10" {
			return fmt.Errorf("%s were carried out", n)
		}
		return nil
	})
}

func TestFailuresSayWhatIsWrong(t *testing.T) {
	t.Run("no redis-server", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		said := failing(t, func(tb testing.TB) { Alone(tb) })
		if !strings.Contains(said, "redis-server is not in PATH") || !strings.Contains(said, "apt-get install") {
			t.Errorf("it says %q", said)
		}
	})
	t.Run("a setting Redis does not know", func(t *testing.T) {
		said := failing(t, func(tb testing.TB) { Alone(tb, "no-such-setting 1") })
		if !strings.Contains(said, "no-such-setting") {
			t.Errorf("it says %q", said)
		}
	})
}
