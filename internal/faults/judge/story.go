package judge

import (
	"fmt"
	"slices"
	"strings"
)

// purposes are the words for purposes in a story.
var purposes = [...]string{Send: "send", Look: "look", Verify: "verify", Take: "take", Release: "release", Suppress: "suppress", Lift: "lift"}

// Story returns all that the run has of a mailbox or the subject of an action, in order of time,
// which is in milliseconds since the first fault began.
func (r *Run) Story(subject string) string {
	type line struct {
		at   int64
		text string
	}
	var lines []line
	add := func(at int64, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	zero := int64(0)
	for i, f := range r.Faults {
		if i == 0 {
			zero = f.From
		}
		add(f.From, "fault until %d", f.To-zero)
	}
	for i := range r.Calls {
		if c := &r.Calls[i]; c.Subject == subject {
			add(c.Span.From, "%s to node %d, until %d: %d %s %s key %q degraded %t replayed %t",
				purposes[c.For], c.Node, c.Span.To-zero, c.Status, c.Kind, c.ID, c.Key, c.Degraded, c.Replayed)
		}
	}
	for _, m := range r.Mails {
		if m.Mailbox == subject {
			add(m.At, "email %s, refused %t", m.ID, m.Refused)
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "%8d %s\n", l.at-zero, l.text)
	}
	return text.String()
}
