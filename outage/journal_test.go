package outage_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// A journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// lines are those with the words in them.
func (j *journal) lines(words string) (all []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, words) {
			all = append(all, line)
		}
	}
	return all
}
