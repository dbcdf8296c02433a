package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// WithClock restarts the server with a clock that can be set apart from the machine's: set puts it
// ahead or behind at once, also while the server runs. It needs a C compiler, as the race detector
// does: a library in front of the system's tells the server the time.
func (s *Server) WithClock() (set func(ahead time.Duration)) {
	t := s.t
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux can a Redis server have a clock of its own")
	}
	library, source, ahead := filepath.Join(s.Dir, "clock.so"), filepath.Join(s.Dir, "clock.c"), filepath.Join(s.Dir, "ahead")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("cannot compile the clock of a Redis server: %v\n%s", err, out)
	}
	file, err := os.Create(ahead)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	set = func(by time.Duration) { // in one piece, into the page that the server has mapped
		if _, err := file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by.Microseconds())), 0); err != nil {
			t.Errorf("cannot set the clock of a Redis server: %v", err)
		}
	}
	set(0)
	s.environ = []string{"LD_PRELOAD=" + library, "REDISTEST_AHEAD=" + ahead}
	s.Restart()
	return set
}
