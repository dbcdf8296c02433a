package wire_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const now = int64(1_795_176_000_000) // 2026-11-20T12:00:00Z

// Texts come out as they are, whatever another reader makes of them.
func TestEncode_AnyText_ReadBackAlike(t *testing.T) {
	for _, text := range []string{"", "plain", `"quoted\"`, "tab\tand\nline", "\x00\x1f\x7f", "ä € 😀", "\u2028", "</script>"} {
		var back string
		if err := json.Unmarshal(wire.Encode(text), &back); err != nil || back != text {
			t.Errorf("%q became %q, %v", text, back, err)
		}
	}
	if got := string(wire.Encode("a\x80<b>\xff")); got != "\"a\ufffd<b>\ufffd\"" {
		t.Errorf("no UTF-8 became %s", got)
	}
}

// Where the clock has stepped back, everything counts from what it shows now.
func TestLimits_ClockStepsBack_WaitsCountFromIt(t *testing.T) {
	v := verdict(t, "minute=1/60s,hour=5/1h", now, now-5000)
	limits := wire.Limits(&v, "")
	if wire.Wait(&v) != 65_000 || limits[0].Wait != 65_000 || limits[1].Wait != 0 || limits[1].Refill != 3_605_000 {
		t.Errorf("%d %v", wire.Wait(&v), limits)
	}
}

// Windows and waits are rounded up, so that they are long enough; where there are no limits there
// is nothing to say. Those that are full are named.
func TestRateLimit_ShortWindows_InWholeSeconds(t *testing.T) {
	v := verdict(t, "blink=1/400ms,odd=2/1500ms", now-1, now)
	limits := wire.Limits(&v, "a hash")
	if got := wire.RateLimit(limits); got != `"blink";r=0;t=1;pk=:YSBoYXNo:, "odd";r=1;t=2;pk=:YSBoYXNo:` {
		t.Error(got)
	}
	if got := wire.RateLimitPolicy(limits); got != `"blink";q=1;w=1;pk=:YSBoYXNo:, "odd";q=2;w=2;pk=:YSBoYXNo:` {
		t.Error(got)
	}
	if full := wire.Violated(limits); !slices.Equal(full, []string{"blink"}) {
		t.Error(full)
	}
	if got := wire.RateLimit(nil) + wire.RateLimitPolicy(nil); got != "" {
		t.Error(got)
	}
}

func TestObject_EachField_AsEncodeWritesIt(t *testing.T) {
	type object struct {
		Title  string `json:"title"`
		Status int64  `json:"status"`
		wire.Verdict
		Violated []string `json:"violated-policies"`
		MS       float64  `json:"ms"`
		Replayed bool     `json:"replayed"`
	}
	v := verdict(t, "minute=1/60s,hour=5/1h", now, now+1)
	full := wire.NewVerdict("a\xff\"b", &v, wire.Limits(&v, ""))
	full.Countdown = "token"
	for _, v := range []wire.Verdict{full, wire.NewVerdict("", &throttle.Verdict{Now: now, Degraded: true}, []wire.Limit{})} {
		var o wire.Object
		o.String("title", "tab\t</x>")
		o.Int("status", 429)
		o.Verdict(&v)
		o.Any("violated-policies", []string{"minute", "\n"})
		o.Float("ms", 1234.567)
		o.Any("replayed", true)
		if got, want := string(o.End()), string(wire.Encode(object{"tab\t</x>", 429, v, []string{"minute", "\n"}, 1234.567, true})); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A wait in seconds is never shorter than the one in milliseconds, nor by a second
// longer, and any moment is a JSON string.
func FuzzSeconds(f *testing.F) {
	for _, ms := range []int64{0, 1, 999, 1000, 1001, 1<<53 - 1, 1<<63 - 1, -1, -1 << 63} {
		f.Add(ms)
	}
	f.Fuzz(func(t *testing.T, ms int64) {
		if text := wire.Encode(wire.Time(ms)); !json.Valid(text) {
			t.Fatalf("%d is %s", ms, text)
		}
		if ms < 0 {
			return // no wait is so long
		}
		seconds := wire.Seconds(ms)
		if seconds < ms/1000 || seconds > ms/1000+1 || seconds == ms/1000 && ms%1000 != 0 {
			t.Fatalf("%d ms are %d s", ms, seconds)
		}
	})
}

// verdict is what the next send is told at a moment, after one at another.
func verdict(t *testing.T, policy string, sent, at int64) throttle.Verdict {
	t.Helper()
	p := throttletest.Policy(t, policy)
	state, _ := p.Take(nil, throttle.Admission{ID: throttle.NewID(), At: sent})
	return p.Peek(state, at)
}
