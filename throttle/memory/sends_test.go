package memory

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// The memory of a burst is given back when few of its sends count any more.
func TestABurstOfSendsLeavesNothing(t *testing.T) {
	for _, live := range []int{0, 1, 5} {
		var s sends
		for at := range int64(500) {
			s.add(s.history(), throttle.Admission{ID: throttle.NewID(), At: at})
		}
		burst := s.history()
		last := throttle.Admission{ID: throttle.NewID(), At: 500}
		s.add(burst[len(burst)-live:], last)
		got := s.history()
		if len(got) != live+1 || got[live] != last || live > 0 && got[0] != burst[len(burst)-live] {
			t.Errorf("%d of a burst and one more are %v", live, got)
		}
		if room := len(*s.room.Load()); room > 8*(live+1) {
			t.Errorf("%d sends have room for %d", live+1, room)
		}
		if len(burst) != 500 || burst[499].At != 499 {
			t.Error("what was handed out has changed")
		}
	}
}
