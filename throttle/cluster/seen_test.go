package cluster

import (
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
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
