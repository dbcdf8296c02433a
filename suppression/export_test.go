package suppression

import (
	"fmt"
	"time"
)

// Fill puts entries into the index of a list, a third each for three reasons.
func Fill(l *List, n int) {
	now := time.Now().UnixMilli()
	for i := range n {
		l.apply(Entry{Address: fmt.Sprintf("u%d@example.com", i), Reason: Reasons[i%3]}, now)
	}
}
