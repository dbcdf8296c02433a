package local

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

func history(t testing.TB, at ...int64) throttle.History {
	t.Helper()
	var h throttle.History
	for _, ms := range at {
		h = append(h, throttle.Admission{ID: throttle.NewID(), At: ms})
	}
	return h
}

func TestCodecKeepsHistories(t *testing.T) {
	for name, h := range map[string]throttle.History{
		"empty":           {},
		"one":             history(t, 1_800_000_000_000),
		"same moment":     history(t, 5, 5, 5),
		"before 1970":     history(t, -86_400_000, -1, 0, 1),
		"as far as it is": history(t, math.MinInt64/2, 0, math.MaxInt64/2),
		"a thousand":      history(t, slices.Repeat([]int64{1_800_000_000_000}, throttle.MaxLimit)...),
	} {
		t.Run(name, func(t *testing.T) {
			b := historyCodec{}.Append([]byte("before"), h)
			got, err := historyCodec{}.Parse(b[len("before"):])
			if err != nil || !slices.Equal(got, h) {
				t.Fatalf("%v, %v; want %v", got, err, h)
			}
		})
	}
}

// A history in its entry is the same one, in one piece of memory with it unless it is long,
// and who adds to it writes into no other's.
func TestHistoriesInTheirEntries(t *testing.T) {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	m, err := openMap(disk, "entries", historyCodec{}, cache.Size{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	clock := func() int64 { return 0 }
	for n := 1; n <= 12; n++ {
		h := history(t, slices.Repeat([]int64{1_800_000_000_000}, n)...)
		err := m.Update(context.Background(), "key", clock, func(throttle.History, bool, int64) cache.Edit[throttle.History] { return cache.Put(h, math.MaxInt64) })
		if err != nil {
			t.Fatal(err)
		}
		got, found, _, err := m.Get(context.Background(), "key", clock)
		if err != nil || !found || !slices.Equal(got, h) || cap(got) != n && n <= 10 {
			t.Fatalf("%d: %v with a capacity of %d, want %v; %v", n, got, cap(got), h, err)
		}
		// So often that what goes on beside it is less than one for each.
		if pieces := testing.AllocsPerRun(10_000, func() { historyCodec{}.NewEntry(h) }); pieces != 1 {
			t.Errorf("%d: an entry takes %v pieces", n, pieces)
		}
	}
}

func TestCodecRefuses(t *testing.T) {
	whole := historyCodec{}.Append(nil, history(t, 1000, 2000))
	backwards := historyCodec{}.Append(nil, history(t, 2000, 1000))
	for name, b := range map[string][]byte{
		"nothing":          {},
		"another version":  append([]byte{codecVersion + 1}, whole[1:]...),
		"a cut id":         whole[:len(whole)-1],
		"a cut time":       whole[:len(whole)-idBytes-1],
		"one byte more":    append(slices.Clone(whole), 0),
		"an endless time":  {codecVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 6},
		"times going back": backwards,
		"past the end":     historyCodec{}.Append(nil, history(t, math.MaxInt64, math.MinInt64)),
		"a longer time":    {codecVersion, 0x82, 0, 1, 2, 3, 4, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			if h, err := (historyCodec{}).Parse(b); err == nil {
				t.Fatalf("parsed %x as %v", b, h)
			}
		})
	}
}

// Ten sends with their ids fit into 111 bytes.
func TestCodecIsShort(t *testing.T) {
	h := make(throttle.History, 10)
	for i := range h {
		h[i] = throttle.Admission{ID: throttle.NewID(), At: 1_800_000_000_000 + int64(i)*8_640_000}
	}
	if n := len(historyCodec{}.Append(nil, h)); n > 111 {
		t.Fatalf("%d bytes", n)
	}
}

// Whatever is on disk, Parse returns an error or the history whose bytes these are.
func FuzzParse(f *testing.F) {
	f.Add(historyCodec{}.Append(nil, history(f, 1_800_000_000_000, 1_800_000_060_000)))
	f.Add([]byte{codecVersion})
	f.Add([]byte{codecVersion, 1, 1, 2, 3, 4, 5, 6, 0x80, 0, 1, 2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := historyCodec{}.Parse(b)
		if err != nil {
			return
		}
		for i := range h {
			if !h[i].ID.Valid() || i > 0 && h[i].At < h[i-1].At {
				t.Fatalf("parsed %x as %v", b, h)
			}
		}
		if again := (historyCodec{}).Append(nil, h); !bytes.Equal(again, b) {
			t.Fatalf("%x was parsed as %v, which is written %x", b, h, again)
		}
	})
}
