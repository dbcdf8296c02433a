package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

const never = math.MaxInt64

// at is a clock that stands.
func at(now int64) func() int64 { return func() int64 { return now } }

// numbers keeps an int as a varint. What it weighs can be set.
type numbers struct{ weight int }

func (numbers) Append(b []byte, n int) []byte { return binary.AppendVarint(b, int64(n)) }

func (numbers) Parse(b []byte) (int, error) {
	n, length := binary.Varint(b)
	if length != len(b) || length == 0 {
		return 0, errors.New("not a number")
	}
	return int(n), nil
}

func (c numbers) Weigh(int) int { return c.weight }

// Brief puts every other number in brief, so that a key which counts up has one and has none
// by turns. The words belong together.
func (numbers) Brief(n int, _ int64) (b Brief) {
	if n%2 == 0 {
		b = Brief{uint64(n) + 1, ^uint64(n)}
	}
	return b
}

// glance is what Glance says, in brief or not.
func glance(t testing.TB, m *Map[int], key string, now int64) (n int, found bool) {
	t.Helper()
	brief, n, found := m.Glance(key, now)
	if brief == (Brief{}) {
		return n, found
	}
	if n != 0 || found {
		t.Errorf("%s: it says %v, and %d, %t", key, brief, n, found)
	}
	if n = int(brief[0] - 1); brief != (numbers{}).Brief(n, 0) {
		t.Errorf("%s: %v is not put in brief like this", key, brief)
	}
	return n, true
}

// roomy remembers all that a test puts, tiny next to nothing.
var (
	roomy = Size{Entries: 1000, Bytes: 1 << 20}
	tiny  = Size{Entries: 4, Bytes: 2000}
)

func openMap(t testing.TB, d *Disk, name string) *Map[int] {
	t.Helper()
	return openSized(t, d, name, roomy)
}

func openSized(t testing.TB, d store, name string, size Size) *Map[int] {
	t.Helper()
	m, err := newMap[int](d, name, numbers{}, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func set(t testing.TB, m *Map[int], key string, n int) {
	t.Helper()
	if err := m.Update(context.Background(), key, at(0), func(int, bool, int64) Edit[int] { return Put(n, never) }); err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, m *Map[int], key string, want int) {
	t.Helper()
	if n, found, _, err := m.Get(context.Background(), key, at(0)); n != want || !found || err != nil {
		t.Fatalf("get: %d, %t, %v; want %d", n, found, err, want)
	}
}

func expectAbsent(t testing.TB, m *Map[int], key string) {
	t.Helper()
	if n, found, _, err := m.Get(context.Background(), key, at(0)); n != 0 || found || err != nil {
		t.Fatalf("get: %d, %t, %v; want nothing", n, found, err)
	}
}

// everywhere runs a test on both kinds of disk, with a map that remembers and with
// one that has to read everything back.
func everywhere(t *testing.T, test func(t *testing.T, d *Disk, size Size)) {
	for _, where := range []string{"memory", "directory"} {
		for how, size := range map[string]Size{"remembered": roomy, "forgotten": {Entries: 1, Bytes: 1}} {
			t.Run(where+" "+how, func(t *testing.T) {
				dir := Memory
				if where == "directory" {
					dir = t.TempDir()
				}
				test(t, open(t, DiskOptions{Dir: dir}), size)
			})
		}
	}
}

func TestExpiry(t *testing.T) {
	type look struct {
		now   int64
		found bool
	}
	cases := map[string]struct {
		putAt, expires int64
		looks          []look
	}{
		"found until exactly then":         {0, 1000, []look{{0, true}, {999, true}, {1000, false}, {1001, false}}},
		"the clock steps back":             {0, 1000, []look{{1000, false}, {999, true}, {-1, true}}},
		"put when it has expired":          {1000, 1000, []look{{1000, false}, {999, true}}},
		"put long after it expired":        {math.MaxInt64, math.MinInt64, []look{{0, false}, {math.MinInt64, false}}},
		"never":                            {0, math.MaxInt64, []look{{math.MaxInt64 - 1, true}, {math.MaxInt64, false}}},
		"for longer than an int64 is long": {math.MinInt64, math.MaxInt64, []look{{0, true}}},
		"before 1970":                      {-5000, -4000, []look{{-4001, true}, {-4000, false}}},
	}
	everywhere(t, func(t *testing.T, d *Disk, size Size) {
		m := openSized(t, d, "expiry", size)
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				if err := m.Update(context.Background(), name, at(tc.putAt), func(int, bool, int64) Edit[int] { return Put(7, tc.expires) }); err != nil {
					t.Fatal(err)
				}
				for _, look := range tc.looks {
					n, found, _, err := m.Get(context.Background(), name, at(look.now))
					if found != look.found || err != nil || found && n != 7 || !found && n != 0 {
						t.Errorf("at %d: %d, %t, %v; want %t", look.now, n, found, err, look.found)
					}
				}
			})
		}
		if n, found, _, err := m.Get(context.Background(), "never put", at(math.MinInt64)); found || err != nil {
			t.Errorf("a key that was never put: %d, %v", n, err)
		}
	})
}

func TestEdits(t *testing.T) {
	everywhere(t, func(t *testing.T, d *Disk, size Size) {
		m := openSized(t, d, "edits", size)
		for i, step := range []struct {
			edit  Edit[int]
			now   int64
			shown string // to the edit
			after string
		}{
			{Keep[int](), 0, "0 false", "0 false"},
			{Remove[int](), 0, "0 false", "0 false"},
			{Put(1, 100), 0, "0 false", "1 true"},
			{Keep[int](), 0, "1 true", "1 true"},
			{Put(2, 200), 0, "1 true", "2 true"},
			{Keep[int](), 200, "0 false", "2 true"}, // kept, though expired: the clock may step back
			{Remove[int](), 0, "2 true", "0 false"},
			{Put(3, 300), 0, "0 false", "3 true"},
			{Put(4, 300), 300, "0 false", "4 true"},
		} {
			var shown string
			err := m.Update(context.Background(), "key", at(step.now), func(n int, found bool, _ int64) Edit[int] {
				shown = fmt.Sprint(n, found)
				return step.edit
			})
			n, found, _, getErr := m.Get(context.Background(), "key", at(0))
			if after := fmt.Sprint(n, found); err != nil || getErr != nil || shown != step.shown || after != step.after {
				t.Fatalf("step %d: shown %s, then %s, %v, %v; want %s, %s", i, shown, after, err, getErr, step.shown, step.after)
			}
		}
	})
}

func TestNamesAndKeysAreApart(t *testing.T) {
	everywhere(t, func(t *testing.T, d *Disk, size Size) {
		type place struct{ name, key string }
		var places []place
		for _, name := range []string{"a", "ab", "abc", "b"} {
			for _, key := range []string{"", "a", "b", "ab", "\x00", "\x00a", "a\x00", "b\x00a", "\x00\x00", strings.Repeat("k", 5000)} {
				places = append(places, place{name, key})
			}
		}
		maps := map[string]*Map[int]{}
		for i, p := range places {
			if maps[p.name] == nil {
				maps[p.name] = openSized(t, d, p.name, size)
			}
			expectAbsent(t, maps[p.name], p.key)
			set(t, maps[p.name], p.key, i)
		}
		for i, p := range places {
			expect(t, maps[p.name], p.key, i)
		}
		if err := maps["a"].Update(context.Background(), "b", at(0), func(int, bool, int64) Edit[int] { return Remove[int]() }); err != nil {
			t.Fatal(err)
		}
		expectAbsent(t, maps["a"], "b")
		expect(t, maps["ab"], "", 10)
		expect(t, maps["b"], "a", 31)
	})
}

// A name with a NUL in it could be taken for another name and the start of a key.
func TestNames(t *testing.T) {
	d := open(t, DiskOptions{Dir: Memory})
	for name, good := range map[string]bool{"mailbox": true, "": false, "a\x00b": false} {
		m, err := NewMap[int](d, name, numbers{}, roomy)
		if (err == nil) != good {
			t.Errorf("name %q: %v", name, err)
		}
		if m != nil {
			m.Close()
		}
	}
}

func TestRecall(t *testing.T) {
	d := open(t, DiskOptions{Dir: Memory})
	m := openMap(t, d, "recall")
	set(t, m, "key", 1)
	expect(t, m, "key", 1)
	m.hot.Wait()
	if n, found := m.Recall("key", 0); n != 1 || !found {
		t.Errorf("remembered: %d, %t", n, found)
	}
	if n, found := m.Recall("key", never); n != 0 || found {
		t.Errorf("expired: %d, %t", n, found)
	}
	m.hot.Clear()
	if n, found := m.Recall("key", 0); n != 0 || found {
		t.Errorf("forgotten: %d, %t", n, found)
	}
	m.Close()
	if n, found := m.Recall("key", 0); n != 0 || found {
		t.Errorf("closed: %d, %t", n, found)
	}
}

// An edit that panics leaves nothing locked.
func TestEditThatPanics(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "panic")
	func() {
		defer func() { _ = recover() }()
		_ = m.Update(context.Background(), "key", at(0), func(int, bool, int64) Edit[int] { panic("edit") })
	}()
	set(t, m, "key", 1)
	expect(t, m, "key", 1)
}
