package servertest

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// Fill fills a file system with one file, no faster than a drive would, so that a write soon after
// a check for room still finds it.
func Fill(t testing.TB, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; time.Sleep(5 * time.Millisecond) {
		if _, err := file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
