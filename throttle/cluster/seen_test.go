package cluster

import (
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

func TestReadHistory(t *testing.T) {
	saw, err := readHistory("\x01\xa3\x18\x6f\x7c\x18abcdefgh" + "1800000000" + "5999" + "+")
	if err != nil {
		t.Fatal(err)
	}
	id, _ := throttle.ParseID("abcdefgh")
	if saw.answer != admitted || saw.now != 1_800_000_000_005 || !slices.Equal(saw.sends, throttle.History{{ID: id, At: 0x01a3186f7c18}}) {
		t.Errorf("%+v", saw)
	}
}

// A place that was vacated is in a queue alone.
func TestReadHistoryRefusesVacantPlaces(t *testing.T) {
	reply := "\x01\xa3\x18\x6f\x7c\x18\x00\x00\x00\x00\x00\x00\x00\x00" + "18000000005999="
	if saw, err := readHistory(reply); err == nil {
		t.Errorf("%+v", saw)
	}
	if saw, err := readSeen(reply); err != nil || !vacant(saw.sends[0]) {
		t.Errorf("%+v, %v", saw, err)
	}
}

func FuzzReadHistory(f *testing.F) {
	f.Add("18000000000")
	f.Add("1800000000999999=")
	f.Add("\x01\xa3\x18\x6f\x7c\x18abcdefgh" + "\x01\xa3\x18\x6f\x7c\x19ABCDEFG_" + "180000000012+")
	f.Fuzz(func(t *testing.T, reply string) {
		saw, err := readHistory(reply)
		if err != nil {
			return
		}
		if tail := len(reply) - len(saw.sends)*sendBytes; tail < leastClock || tail > mostTail {
			t.Fatalf("%q was read as %+v", reply, saw)
		}
		for i, send := range saw.sends {
			if !send.ID.Valid() || i > 0 && send.At < saw.sends[i-1].At {
				t.Fatalf("%q was read as %+v", reply, saw)
			}
		}
	})
}

func FuzzReadState(f *testing.F) {
	f.Add("\x00\x0018000000000")
	f.Add("\x00\x0a\x01\xa3\x18\x6f\x7c\x18\x00\x00\x00\x021800000000999999+")
	f.Add("\x00\x0e\x01\xa3\x18\x6f\x7c\x18\x00\x00\x00\x01\x00\x00\x00\x01\x01\xa3\x18\x6f\x7c\x18abcdefgh1800000000999999=")
	f.Add("\x00\x1a\x01\xa3\x18\x6f\x7c\x18\x00\x00\x00\x00\x01\xff\xff\x01\xa3\x18\x6f\x7c\x18\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\xa3\x18\x6f\x7c\x18\x00\x00\x00\x00\x00\x00\x00\x00" + "\x01\xa3\x18\x6f\x7c\x18abcdefgh1800000000999999=")
	f.Add("\x00\x1a\x01\xa3\x18\x6f\x7c\x18\x00\x00\x00\x00\x00\xff\xff\x01\xa3\x18\x6f\x7c\x18\x00\x00\x00\x00\x00\x00\x0018000000001")
	tier := throttle.Tier{Name: "some", Limit: 3, Window: 60_000}
	fixed, _ := meter.NewFixedWindow(tier)
	sliding, _ := meter.NewSlidingWindow(tier, 0)
	token, _ := meter.NewTokenBucket(tier, 0)
	leaky, _ := meter.NewLeakyBucket(tier, 2)
	f.Fuzz(func(t *testing.T, reply string) {
		saw, err := readState(reply)
		if err != nil {
			return
		}
		if tail := len(reply) - 2 - len(saw.head) - len(saw.sends)*sendBytes; tail < leastClock || tail > mostTail {
			t.Fatalf("%q was read as %+v", reply, saw)
		}
		// Whatever was read, a meter says something to it: yes, no, or that it is nothing.
		for _, m := range []meter.Meter{fixed, sliding, token, leaky} {
			layout, _ := layoutOf(m)
			state, err := layout.state(saw)
			if err != nil {
				continue
			}
			m.Look(&state, saw.now)
			m.Used(&state, saw.now)
			m.Take(&state, throttle.ID([]byte("abcdefgh")), saw.now)
		}
	})
}
