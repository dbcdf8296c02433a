package local

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A state in its entry is the same one, in one piece of memory with it, and who changes a
// clone of it changes no other's.
func TestStatesInTheirEntries(t *testing.T) {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	m, err := openMap(disk, "entries", stateCodec{}, cache.Size{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, clock := context.Background(), func() int64 { return 0 }
	for held := range 5 {
		for parts := range 5 {
			t.Run(fmt.Sprintf("%d sends, %d parts", held, parts), func(t *testing.T) {
				s := meter.State{At: 1, Count: 2, Held: history(t, slices.Repeat([]int64{7}, held)...)}
				for i := range parts {
					s.Parts = append(s.Parts, int64(i))
				}
				if n := testing.AllocsPerRun(10_000, func() { stateCodec{}.NewEntry(&s) }); n != 1 {
					t.Errorf("an entry takes %v pieces", n)
				}
				err := m.Update(ctx, "key", clock, func(*meter.State, bool, int64) cache.Edit[*meter.State] { return cache.Put(&s, math.MaxInt64) })
				if err != nil {
					t.Fatal(err)
				}
				got, found, _, err := m.Get(ctx, "key", clock)
				if err != nil || !found || !sameState(got, &s) {
					t.Fatalf("%+v, want %+v; %v", got, s, err)
				}
				inOne := held > 0 && held <= 2 && parts <= 2
				if inOne && (got == &s || &got.Held[0] == &s.Held[0]) {
					t.Error("what is in it lies elsewhere")
				}
				before := got.Clone()
				clone := got.Clone()
				clone.Held, clone.Parts = append(clone.Held, history(t, 8)...), append(clone.Parts, 9)
				clone.Held[0].At = 9
				clone.Parts[0] = 9
				_ = append(got.Held, clone.Held...)
				_ = append(got.Parts, 9)
				if !sameState(got, &before) {
					t.Errorf("changed to %+v", got)
				}
			})
		}
	}
}
