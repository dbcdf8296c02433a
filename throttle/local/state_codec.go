package local

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/mailgate/mailgate/throttle/meter"
)

// stateCodec writes a state as a version, the moment, the count, how many parts there
// are, the parts, and the admissions. What the numbers mean is the meter's matter, and
// its form is in the key.
type stateCodec struct{}

const stateVersion = 1

var errState = errors.New("not a meter's state")

func (stateCodec) Append(b []byte, s *meter.State) []byte {
	b = append(b, stateVersion)
	b = binary.AppendVarint(b, s.At)
	b = binary.AppendVarint(b, s.Count)
	b = binary.AppendVarint(b, int64(len(s.Parts)))
	for _, part := range s.Parts {
		b = binary.AppendVarint(b, part)
	}
	return appendAdmissions(b, s.Held, s.At)
}

func (stateCodec) Parse(b []byte) (*meter.State, error) {
	if len(b) == 0 || b[0] != stateVersion {
		return nil, errState
	}
	var head [3]int64
	b, ok := cutVarints(b[1:], head[:])
	// Each part has a byte at least, so that a wrong number of them reserves no memory.
	if !ok || head[2] < 0 || head[2] > int64(len(b)) {
		return nil, errState
	}
	s := &meter.State{At: head[0], Count: head[1], Parts: make([]int64, head[2])}
	if b, ok = cutVarints(b, s.Parts); !ok {
		return nil, errState
	}
	if s.Held, ok = parseAdmissions(b, s.At); !ok {
		return nil, errState
	}
	return s, nil
}

func (stateCodec) Weigh(s *meter.State) int {
	return int(unsafe.Sizeof(*s)) + cap(s.Parts)*int(unsafe.Sizeof(s.Parts[0])) + weighAdmissions(s.Held)
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
