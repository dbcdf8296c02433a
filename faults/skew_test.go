package faults_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// skewed builds a mailgate whose clock can be set, apart from the machine's: the same
// program, with a time.Now that adds what the file CLOCK_AHEAD_FILE says, in seconds. The
// monotonic clock goes on, as it does when a machine's clock is set.
var skewed = sync.OnceValues(func() (string, error) {
	source := filepath.Join(runtime.GOROOT(), "src", "time")
	clock, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return "", err
	}
	const read = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	if bytes.Count(clock, []byte(read)) != 1 {
		return "", errors.New("time.Now is not what it was when this was written")
	}
	clock = bytes.Replace(clock, []byte(read), []byte("\tsec, nsec, mono := runtimeNow()\n\tsec += ahead.Load()\n\tif mono == 0 {"), 1)
	overlay := map[string]string{}
	for name, text := range map[string][]byte{"time.go": clock, "ahead.go": []byte(ahead)} {
		written := filepath.Join(built, name)
		overlay[filepath.Join(source, name)] = written
		if err := os.WriteFile(written, text, 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	file := filepath.Join(built, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return "", err
	}
	return build("mailgate-skewed", "-overlay", file)
})

// ahead is the file that package time has more in it.
const ahead = `package time

import (
	"sync/atomic"
	"syscall"
)

var ahead atomic.Int64

func init() {
	if name, ok := syscall.Getenv("CLOCK_AHEAD_FILE"); ok {
		go follow(name)
	}
}

func follow(name string) {
	var text [16]byte
	for ; ; Sleep(20 * Millisecond) {
		file, err := open(name)
		if err != nil {
			continue
		}
		n, _ := read(file, text[:])
		closefd(file)
		if seconds, err := atoi(text[:max(n, 0)]); err == nil {
			ahead.Store(int64(seconds))
		}
	}
}
`
