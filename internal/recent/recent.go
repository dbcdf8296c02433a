// Package recent keeps what a node, or all of them, did last, in memory, for operators: why an email did not come.
//
// An entry is kept as a line of JSON, so that the entries take a bounded number of bytes and cost the garbage collector
// nothing.
package recent

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mailgate/mailgate/internal/wire"
)

const (
	// MaxEntries and MaxBytes bound a Log: the oldest entries make room.
	MaxEntries = 50_000
	MaxBytes   = 20 << 20

	segmentBytes = 64 << 10
)

// Log keeps the newest entries. Its zero value is empty; it may be used by any number of goroutines.
type Log struct {
	mu       sync.Mutex
	segments []segment // oldest first
	next     uint64    // the number of the next entry
	line     wire.Object
}

// segment is a number of entries, one a line. What is written stays as it is, so readers need no lock for
// it.
type segment struct {
	first uint64 // the number of its first entry
	text  []byte
}

// Add adds an entry of this node, of these members of an object, with a comma before each. To make room it drops whole
// segments, so a few entries less than the bounds allow may remain.
func (l *Log) Add(at int64, members []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = l.line[:0]
	l.line.String("position", strconv.FormatUint(1_000_000_000_000+l.next, 10)[1:])
	l.line.Time("at", at)
	l.line = append(append(l.line, members...), "}\n"...)
	n := len(l.segments)
	if n == 0 || len(l.segments[n-1].text)+len(l.line) > segmentBytes {
		l.segments = append(l.segments, segment{l.next, make([]byte, 0, segmentBytes)})
		n++
	}
	last := &l.segments[n-1]
	last.text = append(last.text, l.line...)
	l.next++
	if l.next-l.segments[0].first > MaxEntries || n*segmentBytes > MaxBytes {
		l.segments = slices.Delete(l.segments, 0, 1)
	}
}

// Joined returns an entry of a node, without its position there, as one among those of all nodes, and its position among
// them: by its time, and then by its id at the node. It returns false if that does not begin as an entry does.
func Joined(id, node, entry string) (position string, joined []byte, ok bool) {
	rest, begins := strings.CutPrefix(entry, `{"at":"`)
	at, _, _ := strings.Cut(rest, `"`)
	if !begins || len(at) != len("2006-01-02T15:04:05.000Z") {
		return "", nil, false
	}
	position = at + "." + id + "." + node
	o := make(wire.Object, 0, len(entry)+128)
	o.String("position", position)
	o.String("node", node)
	return position, append(append(o, ','), entry[1:]...), true
}

// Position returns where an entry is in its log. Those of later entries are greater, as texts.
func Position(entry []byte) string { return string(Text(entry, "position")) }

// WithoutPosition returns an entry as Joined takes it.
func WithoutPosition(entry []byte) []byte {
	_, rest, _ := bytes.Cut(entry, []byte{','})
	return append([]byte{'{'}, rest...)
}

// Next returns the number of the next entry. Numbers count from 0.
func (l *Log) Next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// Filter says which entries are looked for.
type Filter struct {
	Members      map[string]string // their texts; those that are empty may be any
	Since, Until string            // as wire.Time writes them; empty for any time
	Before       string            // a position; empty for any
}

// Newest returns the first entries of a walk from the newest. Each is an object of JSON, which must not be changed.
func Newest(entries iter.Seq[[]byte], most int) (found [][]byte) {
	for e := range entries {
		if found = append(found, e); len(found) == most {
			break
		}
	}
	return found
}

// Count is how many entries have a text.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Times returns how many entries one stands for.
func Times(entry []byte) int {
	_, rest, _ := bytes.Cut(entry, []byte(`,"count":`))
	n, err := strconv.Atoi(string(bytes.TrimSuffix(rest, []byte{'}'})))
	if err != nil {
		return 1
	}
	return n
}

// WithTimes returns an entry that stands for several.
func WithTimes(entry []byte, n int) []byte {
	return fmt.Appendf(slices.Clip(entry[:len(entry)-1]), `,"count":%d}`, n)
}

// Most returns, for each of these members, the texts that most entries have.
func Most(entries iter.Seq[[]byte], most int, members ...string) map[string][]Count {
	counts := make([]map[string]*int, len(members))
	for i := range counts {
		counts[i] = map[string]*int{}
	}
	for e := range entries {
		times := Times(e)
		for i, name := range members {
			text := Text(e, name)
			if len(text) == 0 {
				continue
			}
			n := counts[i][string(text)]
			if n == nil {
				n = new(int)
				counts[i][string(text)] = n
			}
			*n += times
		}
	}
	all := map[string][]Count{}
	for i, name := range members {
		list := []Count{}
		for text, n := range counts[i] {
			list = append(list, Count{text, *n})
		}
		slices.SortFunc(list, func(a, b Count) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Name, b.Name)) })
		all[name] = list[:min(most, len(list))]
	}
	return all
}

// All yields, of the entries from one number up to but not including another, those that a filter finds: the newest first.
func (l *Log) All(from, to uint64, f Filter) iter.Seq[[]byte] {
	l.mu.Lock()
	segments := slices.Clone(l.segments)
	l.mu.Unlock()
	finds := f.Finds()
	return func(yield func([]byte) bool) {
		for _, s := range slices.Backward(segments) {
			if s.first >= to {
				continue
			}
			number := s.first + uint64(bytes.Count(s.text, []byte{'\n'}))
			for rest := s.text; len(rest) > 0; {
				rest = rest[:len(rest)-1]
				begin := bytes.LastIndexByte(rest, '\n') + 1
				line := rest[begin:]
				rest = rest[:begin]
				number--
				if number < from {
					return
				}
				if number < to && finds(line) && !yield(line) {
					return
				}
			}
		}
	}
}

// Finds returns what says of an entry whether the filter finds it. In an entry a quote inside of a text has a backslash, so
// that no text looks like a member.
func (f Filter) Finds() func(entry []byte) bool {
	var members [][]byte
	for name, text := range f.Members {
		if text != "" {
			member, _ := jsontext.AppendQuote([]byte(`"`+name+`":`), text)
			members = append(members, member)
		}
	}
	return func(entry []byte) bool {
		if slices.ContainsFunc(members, func(m []byte) bool { return !contains(entry, m) }) {
			return false
		}
		at := string(Text(entry, "at"))
		return at >= f.Since && (f.Until == "" || at < f.Until) && (f.Before == "" || Position(entry) < f.Before)
	}
}

// contains looks for a member without the quote before it, of which an entry has so many that the search would stop at each.
func contains(entry, member []byte) bool {
	for {
		i := bytes.Index(entry, member[1:])
		if i <= 0 || entry[i-1] == member[0] {
			return i > 0
		}
		entry = entry[i+1:]
	}
}

// Text returns the text of a member, up to its first quote.
func Text(line []byte, name string) []byte {
	_, rest, _ := bytes.Cut(line, []byte(`"`+name+`":"`))
	text, _, _ := bytes.Cut(rest, []byte{'"'})
	return text
}
