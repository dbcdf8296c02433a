package redistest

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// WithClock is Alone for a server whose clock can be set apart from the machine's: set
// puts it so far ahead of that, or behind it, at once and also while the server runs.
//
// It takes a C compiler, as the race detector does: the server runs with a small library
// in front of the system's, which tells it the time.
func WithClock(t testing.TB, config ...string) (s *Server, set func(ahead time.Duration)) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux can a Redis server have a clock of its own")
	}
	dir := t.TempDir()
	library, ahead := filepath.Join(dir, "clock.so"), filepath.Join(dir, "ahead")
	source := filepath.Join(dir, "clock.c")
	set = func(by time.Duration) {
		// Written in one piece into the page that the server has mapped.
		if err := writeInPlace(ahead, binary.NativeEndian.AppendUint64(nil, uint64(by.Microseconds()))); err != nil {
			t.Errorf("cannot set the clock of a Redis server: %v", err)
		}
	}
	set(0)
	if err := os.WriteFile(source, []byte(clockSource), 0o600); err != nil {
		t.Fatalf("cannot write the clock of a Redis server: %v", err)
	}
	if out, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("cannot compile the clock of a Redis server: %v\n%s", err, out)
	}
	s = newServer(t, append(defaults(), config...))
	s.environ = []string{"LD_PRELOAD=" + library, "REDISTEST_AHEAD=" + ahead}
	s.Restart()
	return s, set
}

func writeInPlace(name string, octets []byte) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(octets, 0)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// clockSource gives the time of day from a file's eight octets: how many microseconds
// ahead it is. Only what tells the wall clock is ours. The system's calls are made
// directly, as this is asked for the time before libraries can be looked things up in.
const clockSource = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead;

__attribute__((constructor)) static void look(void) {
	const char *name = getenv("REDISTEST_AHEAD");
	int file = name ? open(name, O_RDONLY) : -1;
	if (file < 0) return;
	void *page = mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
	if (page != MAP_FAILED) ahead = page;
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *to) {
	int failed = syscall(SYS_clock_gettime, clock, to);
	if (failed || !ahead || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
	int64_t us = to->tv_sec * 1000000LL + to->tv_nsec / 1000 + *ahead;
	to->tv_sec = us / 1000000;
	to->tv_nsec = us % 1000000 * 1000;
	return 0;
}

int gettimeofday(struct timeval *to, void *zone) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
	to->tv_sec = now.tv_sec;
	to->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *to) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
	if (to) *to = now.tv_sec;
	return now.tv_sec;
}
`
