package servertest

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// Fill takes all that a file system has, with a file in it, as fast as a drive would: on a busy
// machine a put may come a while after it has seen that there is room, and must not find it gone.
func Fill(t testing.TB, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	chunk := make([]byte, 1<<20)
	for ; ; time.Sleep(5 * time.Millisecond) {
		if _, err := file.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			if len(chunk) == 1 {
				return
			}
			chunk = chunk[:1]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
