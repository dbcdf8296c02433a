package cache

import (
	"testing"
)

// One that makes its own entries has them shown as any other is, from memory and from disk.
type madeCodec struct {
	numbers
	made *int
}

func (c madeCodec) NewEntry(n int) *Entry[int] {
	*c.made++
	return NewEntry(func(room *[1]int) int { room[0] = n; return room[0] })
}

func TestACodecMakesItsEntries(t *testing.T) {
	made := 0
	m, err := NewMap(open(t, DiskOptions{Dir: Memory}), "made", madeCodec{made: &made}, Size{Entries: 10, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	set(t, m, "key", 7)
	m.hot.Clear()
	expect(t, m, "key", 7)
	if _, found := m.Recall("key", never); found {
		t.Error("it is found when it has expired")
	}
	if made != 2 {
		t.Errorf("%d made, want one for the write and one for the read from disk", made)
	}
}

// An entry and what its value points to are one piece of memory.
func TestAnEntryIsOnePiece(t *testing.T) {
	var e *Entry[[]int]
	if n := testing.AllocsPerRun(10_000, func() {
		e = NewEntry(func(room *[3]int) []int { return room[:] })
	}); n != 1 || len(e.value) != 3 {
		t.Errorf("%v pieces, and its value is %v", n, e.value)
	}
}
