package redisstore_test

import (
	"errors"
	"testing"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

func TestParseAnswer(t *testing.T) {
	for reply, want := range map[string]redisstore.Answer{
		"+\x01\xa3\x18\x6f\x7c\x18":     {Letter: '+', Now: 0x01a3186f7c18},
		"=\x00\x00\x00\x00\x01\x00more": {Letter: '=', Now: 256, More: "more"},
		"!\x00\x00\x00\x00\x00\x01":     {Letter: '!', Now: 1},
		"?\x00\x00\x00\x00\x00\x01":     {},
		"+\x00\x00\x00\x00\x00":         {},
		"+":                             {},
		"":                              {},
	} {
		got, err := redisstore.ParseAnswer(reply)
		if got != want || errors.Is(err, redisstore.ErrReply) != (want == redisstore.Answer{}) {
			t.Errorf("%q: %+v, %v", reply, got, err)
		}
	}
}

// A record script finds its words, the record and the clock, and what it keeps is there
// for the next.
func TestRecordScript(t *testing.T) {
	now := int64(1_800_000_000_123)
	store := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Timeout: patient, Clock: func() int64 { return now }})
	script := redisstore.NewRecordScript(`
		keep(record .. ARGV[1], now + ARGV[2])
		return answer('+', record)`, "+")
	for step, before := range []string{"", "a", "aa"} {
		call := begin(t, store, "record")
		change := call.Change
		if step == 1 {
			change = call.ChangeLate
		}
		a, err := change(script, "a", 1000)
		if want := (redisstore.Answer{Letter: '+', Now: now, More: before}); a != want || err != nil {
			t.Errorf("step %d: %+v, %v; want %+v", step, a, err, want)
		}
		now += 50_000
	}
}
