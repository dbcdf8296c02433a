package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mailgate/mailgate/internal/need"
)

//go:embed testdata/clock.c
var clockSource []byte

// WithClock restarts the server with a clock that can be set apart from the machine's: set puts it
// ahead or behind at once, also while the server runs.
func (s *Server) WithClock() (set func(ahead time.Duration)) {
	s.t.Helper()
	write := s.ownClock()
	return func(ahead time.Duration) { write(ahead.Microseconds(), 0) }
}

// WithStillClock restarts the server with a clock that stands still between the milliseconds that set
// gives.
func (s *Server) WithStillClock() (set func(now int64)) {
	s.t.Helper()
	write := s.ownClock()
	return func(now int64) { write(now*1000, 1) }
}

// ownClock puts a library in front of the system's, which tells the server the time.
func (s *Server) ownClock() (write func(us, still int64)) {
	t := s.t
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux can a Redis server have a clock of its own")
	}
	library, source, page := filepath.Join(s.Dir, "clock.so"), filepath.Join(s.Dir, "clock.c"), filepath.Join(s.Dir, "clock")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(need.Program(t, "cc"), "-O2", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("cannot compile the clock of a Redis server: %v\n%s", err, out)
	}
	file, err := os.Create(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	write = func(us, still int64) { // in one piece, into the page that the server has mapped
		octets := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, uint64(us)), uint64(still))
		if _, err := file.WriteAt(octets, 0); err != nil {
			t.Errorf("cannot set the clock of a Redis server: %v", err)
		}
	}
	write(0, 0)
	s.environ = []string{"LD_PRELOAD=" + library, "REDISTEST_CLOCK=" + page}
	s.Restart()
	return write
}
