package servertest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

// Log is what a program writes, or a logger of this one.
type Log struct {
	stalled sync.Mutex // held while nothing is read
	mu      sync.Mutex
	text    bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.stalled.Lock()
	defer l.stalled.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Stall holds all writes up, as a full pipe does, until they are resumed.
func (l *Log) Stall() (resume func()) {
	l.stalled.Lock()
	return sync.OnceFunc(l.stalled.Unlock)
}

// String returns what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset forgets what was written.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// Count returns how often it has these words.
func (l *Log) Count(words string) int { return strings.Count(l.String(), words) }

// Lines returns the lines of JSON that contain these words.
func (l *Log) Lines(words string) (found []map[string]any) {
	for text := range strings.Lines(l.String()) {
		var line map[string]any
		if strings.Contains(text, words) && json.Unmarshal([]byte(text), &line) == nil {
			found = append(found, line)
		}
	}
	return found
}
