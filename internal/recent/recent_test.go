package recent

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/wire"
)

// noon is 2026-11-20T12:00:00Z.
const noon = int64(1_795_176_000_000)

// request is what the log says of a refusal.
func request(i int) []slog.Attr {
	return []slog.Attr{slog.String("request_id", fmt.Sprintf("%020d", i)), slog.String("route", "send-code"), slog.Int("status", 429), slog.Float64("ms", 0.123),
		slog.String("from", "192.0.2.1"), slog.String("problem", "quota-exceeded"), slog.String("key", "shop"), slog.String("mailbox", fmt.Sprintf("%010x", i)),
		slog.String("outcome", "denied"), slog.String("rule", "mailbox"), slog.String("limit", "minute"), slog.Int64("wait_ms", 41250), slog.String("door", "http"),
		slog.String("said", "minute 0 of 1 left, wait 41250 ms, hour 4 of 5 left, day 9 of 10 left")}
}

// held is how many entries and bytes a log holds.
func (l *Log) held() (entries, bytes int) {
	for _, s := range l.segments {
		bytes += cap(s.text)
	}
	return len(l.Newest(0, l.next, Filter{}, 1<<30)), bytes
}

// A log holds at most 50,000 entries and 16 MB, whatever is in them, and those are the newest.
func TestLog_Flood_IsBounded(t *testing.T) {
	t.Parallel()
	large := []slog.Attr{slog.String("stack", strings.Repeat("x", 1<<20))}
	for range 25 {
		large = append(large, slog.String("cause", strings.Repeat("\x00é", 10_000)))
	}
	for name, tt := range map[string]struct {
		attrs func(i int) []slog.Attr
		least int
	}{
		"small":    {func(i int) []slog.Attr { return []slog.Attr{slog.Int("i", i)} }, 45_000},
		"requests": {request, 30_000},
		"large":    {func(i int) []slog.Attr { return append(large[:len(large):len(large)], slog.Int("i", i)) }, 300},
	} {
		var l Log
		added := min(56_000, 10*tt.least)
		for i := range added {
			l.Add(noon+int64(i), tt.attrs(i))
			if i%9973 == 0 || i == added-1 {
				entries, bytes := l.held()
				if entries > MaxEntries || bytes > MaxBytes || i == added-1 && entries < tt.least {
					t.Fatalf("%s: %d entries and %d bytes after %d", name, entries, bytes, i+1)
				}
			}
		}
		last := l.Newest(0, l.Next(), Filter{}, 1)[0]
		if !json.Valid(last.Text) || last.Number != uint64(added-1) || !strings.Contains(string(last.Text), wire.Time(noon+int64(added-1))) {
			t.Errorf("%s: the newest is number %d: %.200s", name, last.Number, last.Text)
		}
	}
}

// What is in a text cannot pass for a member of the entry.
func TestNewest_Filter_FindsByMembers(t *testing.T) {
	var l Log
	for i, outcome := range []string{"sent", "denied", `x","outcome":"denied`, "denied"} {
		l.Add(noon+int64(i)*1000, []slog.Attr{slog.String("outcome", outcome), slog.String("key", `a"b`), slog.Bool("replayed", i == 0)})
	}
	for want, f := range map[string]Filter{
		"[3 2 1 0]": {Members: map[string]string{"rule": ""}},
		"[3 1]":     {Members: map[string]string{"outcome": "denied", "key": `a"b`}},
		"[2]":       {Members: map[string]string{"outcome": `x","outcome":"denied`}},
		"[2 1]":     {Since: wire.Time(noon + 1000), Until: wire.Time(noon + 3000)},
		"[]":        {Members: map[string]string{"outcome": "denied", "key": "a"}},
	} {
		numbers := []uint64{}
		for _, e := range l.Newest(0, l.Next(), f, 10) {
			numbers = append(numbers, e.Number)
		}
		if got := fmt.Sprint(numbers); got != want {
			t.Errorf("%+v finds %s, want %s", f, got, want)
		}
	}
	if got := l.Newest(1, 3, Filter{}, 1); len(got) != 1 || got[0].Number != 2 {
		t.Errorf("of two the newest is %v", got)
	}
	most := l.Most(Filter{Members: map[string]string{"outcome": "denied"}}, 1, "outcome", "mailbox")
	if got := must.Get(json.Marshal(most))(t); string(got) != `{"mailbox":[],"outcome":[{"name":"denied","count":2}]}` {
		t.Errorf("%s", got)
	}
}

// Readers see whole entries while others are added.
func TestLog_ReadersAndWriters_SeeWholeEntries(t *testing.T) {
	t.Parallel()
	var l Log
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 2000 {
				l.Add(noon, request(w*2000+i))
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(time.Millisecond):
		}
		for _, e := range l.Newest(0, l.Next(), Filter{}, 200) {
			if !json.Valid(e.Text) {
				t.Fatalf("%s", e.Text)
			}
		}
	}
	if n := len(l.Newest(0, l.Next(), Filter{}, 1<<20)); n != 8000 {
		t.Errorf("%d entries", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	var l Log
	attrs := request(1)
	b.ReportAllocs()
	for b.Loop() {
		l.Add(noon, attrs)
	}
}
