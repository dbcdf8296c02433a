package recent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/wire"
)

// noon is 2026-11-20T12:00:00Z.
const noon = int64(1_795_176_000_000)

// request has the members of a refusal.
func request(i int) []byte {
	return fmt.Appendf(nil, `,"request_id":"%020d","route":"send-code","status":429,"ms":0.123,"from":"192.0.2.1","problem":"quota-exceeded","key":"shop","mailbox":"%010x",`+
		`"outcome":"quota-exceeded","rule":"mailbox","limit":"minute","wait_ms":41250,"door":"http","said":"minute 0 of 1 left, wait 41250 ms, hour 4 of 5 left, day 9 of 10 left"`, i, i)
}

// members are those of an object, with a comma before each.
func members(names ...string) []byte {
	o := wire.Object(",")
	for i := 0; i < len(names); i += 2 {
		o.String(names[i], names[i+1])
	}
	return o[1:]
}

// held is how many entries and bytes a log holds.
func (l *Log) held() (entries, bytes int) {
	for _, s := range l.segments {
		bytes += cap(s.text)
	}
	return len(Newest(l.All(0, l.next, Filter{}), 1<<30)), bytes
}

// A log holds at most 50,000 entries and 16 MB, whatever is in them, and those are the newest.
func TestLog_Flood_IsBounded(t *testing.T) {
	t.Parallel()
	var large []byte
	for range 25 {
		large = append(large, members("cause", strings.Repeat("\x00é", 150))...)
	}
	for name, tt := range map[string]struct {
		members func(i int) []byte
		least   int
	}{
		"small":    {func(i int) []byte { return members("i", fmt.Sprint(i)) }, 45_000},
		"requests": {request, 30_000},
		"large":    {func(int) []byte { return large }, 300},
	} {
		var l Log
		added := min(56_000, 10*tt.least)
		for i := range added {
			l.Add(noon+int64(i), tt.members(i))
			if i%9973 == 0 || i == added-1 {
				entries, bytes := l.held()
				if entries > MaxEntries || bytes > MaxBytes || i == added-1 && entries < tt.least {
					t.Fatalf("%s: %d entries and %d bytes after %d", name, entries, bytes, i+1)
				}
			}
		}
		last := Newest(l.All(0, l.Next(), Filter{}), 1)[0]
		if !json.Valid(last) || Position(last) != fmt.Sprintf("%012d", added-1) || !strings.Contains(string(last), wire.Time(noon+int64(added-1))) {
			t.Errorf("%s: the newest is %.200s", name, last)
		}
	}
}

// What is in a text cannot pass for a member of the entry.
func TestNewest_Filter_FindsByMembers(t *testing.T) {
	var l Log
	for i, outcome := range []string{"sent", "refused", `x","outcome":"refused`, "refused"} {
		l.Add(noon+int64(i)*1000, members("outcome", outcome, "old_key", []string{"z", `a"b`}[i/2], "key", `a"b`))
	}
	for want, f := range map[string]Filter{
		"[3 2 1 0]": {Members: map[string]string{"rule": ""}},
		"[3 1]":     {Members: map[string]string{"outcome": "refused", "key": `a"b`}},
		"[2]":       {Members: map[string]string{"outcome": `x","outcome":"refused`}},
		"[2 1]":     {Since: wire.Time(noon + 1000), Until: wire.Time(noon + 3000)},
		"[]":        {Members: map[string]string{"outcome": "refused", "key": "a"}},
		"[0]":       {Before: "000000000001"},
	} {
		numbers := []int{}
		for e := range l.All(0, l.Next(), f) {
			numbers = append(numbers, must.Get(strconv.Atoi(Position(e)))(t))
		}
		if got := fmt.Sprint(numbers); got != want {
			t.Errorf("%+v finds %s, want %s", f, got, want)
		}
	}
	if got := Newest(l.All(0, l.Next(), Filter{Members: map[string]string{"key": "z"}}), 1); len(got) > 0 {
		t.Errorf("a name that only ends like it finds %s", got)
	}
	if got := Newest(l.All(1, 3, Filter{}), 1); len(got) != 1 || Position(got[0]) != "000000000002" {
		t.Errorf("of two the newest is %s", got)
	}
	most := Most(l.All(0, l.Next(), Filter{Members: map[string]string{"outcome": "refused"}}), 1, "outcome", "mailbox")
	if got := must.Get(json.Marshal(most))(t); string(got) != `{"mailbox":[],"outcome":[{"name":"refused","count":2}]}` {
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
		for _, e := range Newest(l.All(0, l.Next(), Filter{}), 200) {
			if !json.Valid(e) {
				t.Fatalf("%s", e)
			}
		}
	}
	if n := len(Newest(l.All(0, l.Next(), Filter{}), 1<<20)); n != 8000 {
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
