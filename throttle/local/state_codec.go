package local

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// stateCodec writes a state as a version, the moment, the count, how many parts there
// are, the parts, and the admissions. What the numbers mean is the meter's matter, and
// its form is in the key.
//
// Where places are vacant, which have no id, the version is another, and before the
// admissions are how many these are and, for each, how many places it is behind the one
// before it.
type stateCodec struct{}

const (
	stateVersion  = 1
	vacantVersion = 2
)

var errState = errors.New("not a meter's state")

func (stateCodec) Append(b []byte, s *meter.State) []byte {
	vacant := vacantPlaces(s.Held)
	version := byte(stateVersion)
	if vacant != nil {
		version = vacantVersion
	}
	b = binary.AppendVarint(append(b, version), s.At)
	b = binary.AppendVarint(b, s.Count)
	b = appendCounted(b, s.Parts)
	if vacant != nil {
		b = appendCounted(b, vacant)
	}
	return appendAdmissions(b, s.Held, s.At)
}

func (stateCodec) Parse(b []byte) (*meter.State, error) {
	if len(b) == 0 || b[0] != stateVersion && b[0] != vacantVersion {
		return nil, errState
	}
	version := b[0]
	var head [2]int64
	b, ok := cutVarints(b[1:], head[:])
	if !ok {
		return nil, errState
	}
	s := &meter.State{At: head[0], Count: head[1]}
	if s.Parts, b, ok = cutCounted(b); !ok {
		return nil, errState
	}
	var vacant []int64
	if version == vacantVersion {
		if vacant, b, ok = cutCounted(b); !ok || len(vacant) == 0 {
			return nil, errState
		}
	}
	if s.Held, ok = parseAdmissions(b, s.At); !ok || !vacate(s.Held, vacant) {
		return nil, errState
	}
	return s, nil
}

// NewEntry has a state in one piece with its entry, and what is in it too where that is
// little: who says no then waits for the memory once, and not three times.
func (stateCodec) NewEntry(s *meter.State) *cache.Entry[*meter.State] {
	if len(s.Held) > len(littleState{}.held) || len(s.Parts) > len(littleState{}.parts) {
		return cache.NewEntry(func(room *meter.State) *meter.State {
			*room = *s
			return room
		})
	}
	return cache.NewEntry(func(room *littleState) *meter.State { return room.lay(s) })
}

// A littleState is one with all that is in it: of two sends at most, and no more parts than a
// bucket has.
type littleState struct {
	meter.State
	held  [2]throttle.Admission
	parts [2]int64
}

func (room *littleState) lay(s *meter.State) *meter.State {
	room.State = *s
	if n := copy(room.held[:], s.Held); n > 0 {
		room.Held = room.held[:n:n]
	}
	if n := copy(room.parts[:], s.Parts); n > 0 {
		room.Parts = room.parts[:n:n]
	}
	return &room.State
}

// vacantPlaces are where the admissions have no id, each counted from the one before.
func vacantPlaces(h throttle.History) (places []int64) {
	next := 0
	for i := range h {
		if h[i].ID == (throttle.ID{}) {
			places, next = append(places, int64(i-next)), i+1
		}
	}
	return places
}

// vacate takes the ids from these places, where no bit of one may have been written.
func vacate(h throttle.History, places []int64) bool {
	nothing := throttle.ID([]byte("AAAAAAAA"))
	next := int64(0)
	for _, skip := range places {
		if skip < 0 || skip >= int64(len(h))-next || h[next+skip].ID != nothing {
			return false
		}
		h[next+skip].ID = throttle.ID{}
		next += skip + 1
	}
	return true
}

func (stateCodec) Weigh(s *meter.State) int {
	return int(unsafe.Sizeof(*s)) + cap(s.Parts)*int(unsafe.Sizeof(s.Parts[0])) + weighAdmissions(s.Held)
}

// appendCounted writes how many numbers there are, and the numbers.
func appendCounted(b []byte, numbers []int64) []byte {
	b = binary.AppendVarint(b, int64(len(numbers)))
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// cutCounted takes what appendCounted wrote off the front of b. Each number has a byte at
// least, so that a wrong number of them reserves no memory.
func cutCounted(b []byte) (numbers []int64, rest []byte, ok bool) {
	count, b, ok := cutVarint(b)
	if !ok || count < 0 || count > int64(len(b)) {
		return nil, nil, false
	}
	numbers = make([]int64, count)
	rest, ok = cutVarints(b, numbers)
	return numbers, rest, ok
}

// cutVarints fills numbers from the front of b.
func cutVarints(b []byte, numbers []int64) (rest []byte, ok bool) {
	for i := range numbers {
		if numbers[i], b, ok = cutVarint(b); !ok {
			return nil, false
		}
	}
	return b, true
}
