// Package recent keeps what a node did last, in memory, for its operators: why an email did not come.
//
// An entry is kept as a line of JSON, so that the entries take a bounded number of bytes and cost the garbage collector
// nothing.
package recent

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mailgate/mailgate/internal/wire"
)

const (
	// MaxEntries and MaxBytes bound a Log: the oldest entries make room.
	MaxEntries = 50_000
	MaxBytes   = 16 << 20

	segmentBytes = 64 << 10
)

// Log keeps the newest entries. Its zero value is empty; it may be used by any number of goroutines.
type Log struct {
	mu       sync.Mutex
	segments []segment // oldest first
	next     uint64    // the number of the next entry, less one
}

// segment is a number of entries, one a line. What is written stays as it is, so readers need no lock for
// it.
type segment struct {
	first uint64 // the number of its first entry
	text  []byte
}

var objects = sync.Pool{New: func() any { return new(wire.Object) }}

// Add adds an entry of these members of an object, with a comma before each.
func (l *Log) Add(at int64, members []byte) {
	o := objects.Get().(*wire.Object)
	defer objects.Put(o)
	*o = (*o)[:0]
	o.Time("at", at)
	*o = append(append(*o, members...), "}\n"...)
	l.keep(*o)
}

// keep drops whole segments, so that a few entries less than the bounds allow may be kept.
func (l *Log) keep(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.segments)
	if n == 0 || len(l.segments[n-1].text)+len(line) > segmentBytes {
		l.segments = append(l.segments, segment{l.next, make([]byte, 0, segmentBytes)})
		n++
	}
	last := &l.segments[n-1]
	last.text = append(last.text, line...)
	l.next++
	if l.next-l.segments[0].first > MaxEntries || n*segmentBytes > MaxBytes {
		l.segments = slices.Delete(l.segments, 0, 1)
	}
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
}

// An Entry is an object of JSON, which must not be changed.
type Entry struct {
	Number uint64
	Text   []byte
}

// Newest returns, of the entries from one number up to but not including another, those that a filter
// finds: the newest first, and no more than a number of them.
func (l *Log) Newest(from, to uint64, f Filter, most int) (found []Entry) {
	for e := range l.all(from, to, f) {
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

// Most returns, for each of these members, the texts that most entries have, of those that a filter finds.
func (l *Log) Most(f Filter, most int, members ...string) map[string][]Count {
	counts := make([]map[string]int, len(members))
	for e := range l.all(0, l.Next(), f) {
		for i, name := range members {
			if text := textOf(e.Text, name); len(text) > 0 {
				if counts[i] == nil {
					counts[i] = map[string]int{}
				}
				counts[i][string(text)]++
			}
		}
	}
	all := map[string][]Count{}
	for i, name := range members {
		list := []Count{}
		for text, n := range counts[i] {
			list = append(list, Count{text, n})
		}
		slices.SortFunc(list, func(a, b Count) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Name, b.Name)) })
		all[name] = list[:min(most, len(list))]
	}
	return all
}

// all yields the entries that a filter finds, the newest first.
func (l *Log) all(from, to uint64, f Filter) func(yield func(Entry) bool) {
	l.mu.Lock()
	segments := slices.Clone(l.segments)
	l.mu.Unlock()
	wanted := f.members()
	return func(yield func(Entry) bool) {
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
				if number < to && f.covers(line) && hasAll(line, wanted) && !yield(Entry{number, line}) {
					return
				}
			}
		}
	}
}

// members returns the members that a line must have, encoded as in the line. Quotes in a text are escaped there, so no
// text looks like a member.
func (f Filter) members() (all [][]byte) {
	for name, text := range f.Members {
		if text != "" {
			member, _ := jsontext.AppendQuote([]byte(`"`+name+`":`), text)
			all = append(all, member)
		}
	}
	return all
}

func hasAll(line []byte, members [][]byte) bool {
	return !slices.ContainsFunc(members, func(m []byte) bool { return !bytes.Contains(line, m) })
}

// covers reports whether an entry is of the time of the filter.
func (f Filter) covers(line []byte) bool {
	at := string(textOf(line, "at"))
	return at >= f.Since && (f.Until == "" || at < f.Until)
}

// textOf returns the text of a member, up to its first quote.
func textOf(line []byte, name string) []byte {
	_, rest, _ := bytes.Cut(line, []byte(`"`+name+`":"`))
	text, _, _ := bytes.Cut(rest, []byte{'"'})
	return text
}
