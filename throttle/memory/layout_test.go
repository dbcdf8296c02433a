package memory

import (
	"testing"
	"unsafe"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// line is as much as processor cores hand over to each other at once.
const line = 64

// An admission that is only counted writes to one line of memory of its key's entry, wherever in
// a block that is: the runtime puts a word of its own before each block.
func TestACountWritesToOneLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) < 8 {
		t.Skip("entries are laid out for 64 bits")
	}
	m, err := meter.NewFixedWindow(throttle.Tier{Name: "hour", Limit: 60, Window: 3_600_000})
	if err != nil {
		t.Fatal(err)
	}
	l := New(m, Options{})
	for i := range 3 * perBlock {
		s, e, _, err := l.states.lockOrAdd(fingerprint{first: uint64(i * shards), second: 1}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		first, last := uintptr(unsafe.Pointer(&e.Mutex)), uintptr(unsafe.Pointer(&e.state.Count))
		if first/line != last/line {
			t.Errorf("entry %d: its lock is at %d of one line, its count at %d of the next", i, first%line, last%line)
		}
		l.states.keep(s, e)
		unlock(s, e)
	}
}
