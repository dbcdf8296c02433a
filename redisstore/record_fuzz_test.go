package redisstore_test

import (
	"errors"
	"testing"

	"github.com/mailgate/mailgate/redisstore"
)

// Whatever a script replies is refused, or is all of it in the answer.
func FuzzParseAnswer(f *testing.F) {
	for _, seed := range []string{"", "+", "+\x01\xa3\x18\x6f\x7c\x18", "=\x00\x00\x00\x00\x01\x00more", "?\x00\x00\x00\x00\x00\x01", "!\xff\xff\xff\xff\xff\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		a, err := redisstore.ParseAnswer(reply)
		if err != nil {
			if a != (redisstore.Answer{}) || !errors.Is(err, redisstore.ErrReply) {
				t.Fatalf("%q: %+v, %v", reply, a, err)
			}
			return
		}
		again := []byte{a.Letter}
		for shift := 40; shift >= 0; shift -= 8 {
			again = append(again, byte(a.Now>>shift))
		}
		if string(again)+a.More != reply || a.Now < 0 {
			t.Fatalf("%q was read as %+v", reply, a)
		}
	})
}
