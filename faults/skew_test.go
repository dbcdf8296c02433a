package faults_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

// skewed builds a mailgate whose clock can be set, apart from the machine's: the same
// program, with a now in cmd/mailgate/clock.go that adds what the file CLOCK_AHEAD_FILE says, in seconds. The
// monotonic clock continues, as it does when a machine's clock is set.
var skewed = sync.OnceValues(func() (string, error) {
	replaced, err := filepath.Abs(filepath.Join("..", "cmd", "mailgate", "clock.go"))
	if err != nil {
		return "", err
	}
	written := filepath.Join(built, "clock.go")
	if err := os.WriteFile(written, []byte(ahead), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{replaced: written}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(built, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return "", err
	}
	return build("mailgate-skewed", "-overlay", file)
})

// ahead replaces that file.
const ahead = `package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

var ahead = func() *atomic.Int64 {
	var ms atomic.Int64
	go follow(&ms, os.Getenv("CLOCK_AHEAD_FILE"))
	return &ms
}()

// now is the machine's clock, and what it is ahead.
func now() int64 { return time.Now().UnixMilli() + ahead.Load() }

func follow(ms *atomic.Int64, name string) {
	for ; ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			ms.Store(1000 * seconds)
		}
	}
}
`
