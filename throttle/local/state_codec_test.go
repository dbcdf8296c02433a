package local

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

const noon = int64(1_800_000_000_000)

func sameState(a, b *meter.State) bool {
	return a.At == b.At && a.Count == b.Count && slices.Equal(a.Parts, b.Parts) && slices.Equal(a.Held, b.Held)
}

func TestStateCodecKeepsStates(t *testing.T) {
	for name, s := range map[string]*meter.State{
		"zero":               {},
		"a count":            {At: noon, Count: 3},
		"parts":              {At: noon, Count: 6, Parts: []int64{1, 0, 5}},
		"admissions":         {At: noon, Count: 2, Held: history(t, noon-1, noon+1)},
		"a clock stepped":    {At: noon, Count: 3, Parts: []int64{noon, 0}, Held: history(t, noon+900, noon+100, noon+500)},
		"before 1970":        {At: -1, Count: 1, Parts: []int64{-86_400_000}, Held: history(t, -86_400_000)},
		"as far as it is":    {At: math.MinInt64, Count: math.MaxInt64, Parts: []int64{math.MinInt64, math.MaxInt64}, Held: history(t, math.MaxInt64, math.MinInt64)},
		"vacant places":      {At: noon, Count: 4, Parts: []int64{noon, 0}, Held: without(history(t, noon, noon+1, noon+2, noon+3, noon+4), 0, 2, 3)},
		"none but vacant":    {At: noon, Count: 2, Held: without(history(t, noon, noon+1), 0, 1)},
		"as long as it gets": {At: noon, Count: meter.MaxLimit, Parts: make([]int64, meter.MaxParts+1), Held: history(t, slices.Repeat([]int64{noon}, meter.MaxHeld)...)},
	} {
		t.Run(name, func(t *testing.T) {
			b := stateCodec{}.Append([]byte("before"), s)
			got, err := stateCodec{}.Parse(b[len("before"):])
			if err != nil || !sameState(got, s) {
				t.Fatalf("%+v, %v; want %+v", got, err, s)
			}
		})
	}
}

// without is the history with some places vacant.
func without(h throttle.History, places ...int) throttle.History {
	for _, i := range places {
		h[i].ID = throttle.ID{}
	}
	return h
}

// The id without a bit set is an id like any other, and no vacant place.
func TestStateCodecTellsAnIDFromNone(t *testing.T) {
	s := &meter.State{At: noon, Count: 2, Held: without(history(t, noon, noon+1), 0)}
	s.Held[1].ID = throttle.ID([]byte("AAAAAAAA"))
	if got, err := (stateCodec{}).Parse(stateCodec{}.Append(nil, s)); err != nil || !sameState(got, s) {
		t.Fatalf("%+v, %v; want %+v", got, err, s)
	}
}

func TestStateCodecRefuses(t *testing.T) {
	whole := stateCodec{}.Append(nil, &meter.State{At: 1, Count: 2, Parts: []int64{3, 4}, Held: history(t, 1000, 2000)})
	if _, err := (stateCodec{}).Parse(whole); err != nil {
		t.Fatal(err)
	}
	vacant := stateCodec{}.Append(nil, &meter.State{Held: without(history(t, 1, 2), 1)})
	if _, err := (stateCodec{}).Parse(vacant); err != nil || vacant[0] != vacantVersion {
		t.Fatalf("%x, %v", vacant, err)
	}
	inPlace := func(b []byte, i int, as byte) []byte { b = slices.Clone(b); b[i] = as; return b }
	for name, b := range map[string][]byte{
		"no vacant place":            inPlace(vacant, 4, 0),
		"a vacant place that is not": inPlace(vacant, 5, 0),
		"one behind the last":        inPlace(vacant, 5, 4),
		"one before the first":       inPlace(vacant, 5, 1),
		"an id in a vacant place":    inPlace(vacant, len(vacant)-1, 1),
		"more vacant than there can": inPlace(vacant, 4, 126),
		"nothing":                    {},
		"the version alone":          {stateVersion},
		"another version":            append([]byte{vacantVersion + 1}, whole[1:]...),
		"no count":                   {stateVersion, 0},
		"no number of parts":         {stateVersion, 0, 0},
		"fewer parts than it says":   {stateVersion, 0, 0, 4, 0},
		"more parts than there can":  {stateVersion, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"less than no parts":         {stateVersion, 0, 0, 1},
		"a part cut off":             {stateVersion, 0, 0, 4, 0, 0x80},
		"a cut id":                   whole[:len(whole)-1],
		"a cut time":                 whole[:len(whole)-idBytes-1],
		"one byte more":              append(slices.Clone(whole), 0),
		"a number longer than it is": {stateVersion, 0x82, 0, 0, 0},
		"a number without end":       {stateVersion, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := (stateCodec{}).Parse(b); err == nil {
				t.Fatalf("parsed %x as %+v", b, s)
			}
		})
	}
}

// What a key costs on disk.
func TestStateCodecIsShort(t *testing.T) {
	day := throttle.Tier{Name: "day", Limit: 10, Window: 86_400_000}
	fixed, err := meter.NewFixedWindow(day)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := meter.NewTokenBucket(day, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by   meter.Meter
		once int
		full int
	}{
		"fixed window": {fixed, 19, 109},
		"token bucket": {bucket, 33, 123},
	} {
		t.Run(name, func(t *testing.T) {
			var s meter.State
			for i := range 10 {
				c.by.Take(&s, throttle.NewID(), noon+int64(i))
				want := c.full
				if i == 0 {
					want = c.once
				}
				if n := len(stateCodec{}.Append(nil, &s)); n > want {
					t.Errorf("%d bytes after %d sends, want at most %d", n, i+1, want)
				}
			}
		})
	}
}

// States that are read back take as much memory as they are said to.
func TestStateCodecWeighs(t *testing.T) {
	for name, s := range map[string]*meter.State{
		"small": {At: noon, Count: 2, Parts: []int64{noon, 0}, Held: history(t, noon, noon+1)},
		"large": {At: noon, Count: 60, Parts: make([]int64, 60), Held: history(t, slices.Repeat([]int64{noon}, 60)...)},
	} {
		t.Run(name, func(t *testing.T) {
			b := stateCodec{}.Append(nil, s)
			before, said := allocated(), 0
			for range 20_000 {
				parsed, err := stateCodec{}.Parse(b)
				if err != nil {
					t.Fatal(err)
				}
				said += stateCodec{}.Weigh(parsed)
			}
			took := int(allocated() - before)
			if said < took*8/10 || said > took*12/10 {
				t.Errorf("said to take %d bytes, took %d", said, took)
			}
		})
	}
}

// allocated is how many bytes have been since the start, those that are free again
// included.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Whatever is on disk, Parse returns an error or the state whose bytes these are.
func FuzzParseState(f *testing.F) {
	f.Add(stateCodec{}.Append(nil, &meter.State{}))
	f.Add(stateCodec{}.Append(nil, &meter.State{At: noon, Count: 2, Parts: []int64{noon, 60_000}, Held: history(f, noon+900, noon)}))
	f.Add(stateCodec{}.Append(nil, &meter.State{At: noon, Held: without(history(f, noon, noon, noon), 0, 2)}))
	f.Add([]byte{stateVersion, 0x82, 0, 0, 0})
	f.Add([]byte{stateVersion, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		given := bytes.Clone(b)
		s, err := stateCodec{}.Parse(b)
		if !bytes.Equal(b, given) {
			t.Fatalf("%x became %x", given, b)
		}
		if err != nil {
			return
		}
		for _, a := range s.Held {
			if !a.ID.Valid() && a.ID != (throttle.ID{}) {
				t.Fatalf("parsed %x as %+v", b, s)
			}
		}
		if again := (stateCodec{}).Append(nil, s); !bytes.Equal(again, b) {
			t.Fatalf("%x was parsed as %+v, which is written %x", b, s, again)
		}
	})
}
