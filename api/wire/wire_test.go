package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
	"github.com/valyala/fasthttp"
)

const now = int64(1_795_176_000_000) // 2026-11-20T12:00:00Z

// What another reader of JSON makes of it.
func TestAppendString(t *testing.T) {
	for _, text := range []string{"", "plain", `"quoted\"`, "tab\tand\nline", "\x00\x1f\x7f", "ä € 😀", "\u2028", "</script>"} {
		var back string
		if err := json.Unmarshal(wire.AppendString(nil, text), &back); err != nil || back != text {
			t.Errorf("%q became %q, %v", text, back, err)
		}
	}
	if got := string(wire.AppendString(nil, "a\x80b\xff")); got != `"a�b�"` {
		t.Errorf("no UTF-8 became %s", got)
	}
}

func TestSeconds(t *testing.T) {
	for ms, want := range map[int64]int64{0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2, 60_000: 60} {
		if got := wire.Seconds(ms); got != want {
			t.Errorf("%d ms: %d s, want %d", ms, got, want)
		}
	}
}

// Where the clock has stepped back, everything counts from what it shows now; what was
// appended before stays as it was.
func TestWaitsUnderASteppingClock(t *testing.T) {
	v := verdict(t, "minute=1/60s,hour=5/1h", now, now-5000)
	before := wire.Limit{TierState: throttle.TierState{Tier: throttle.Tier{Name: "before"}, Wait: 7}}
	limits := wire.AppendLimits([]wire.Limit{before}, &v, "")
	if wire.Wait(&v) != 65_000 || limits[0] != before || limits[1].Wait != 65_000 || limits[2].Wait != 0 || limits[2].Refill != 3_605_000 {
		t.Errorf("%d %v", wire.Wait(&v), limits)
	}
}

// Windows and waits are rounded up, so that whoever waits has waited long enough; where
// there are no limits there are no headers.
func TestSetRateLimit(t *testing.T) {
	v := verdict(t, "blink=1/400ms,odd=2/1500ms", now-1, now)
	var h fasthttp.ResponseHeader
	line := wire.SetRateLimit(&h, make([]byte, 0, 256), wire.AppendLimits(nil, &v, "a hash"))
	text := h.String()
	for _, want := range []string{
		"\r\nRateLimit: \"blink\";r=0;t=1;pk=:YSBoYXNo:, \"odd\";r=1;t=2;pk=:YSBoYXNo:\r\n",
		"\r\nRateLimit-Policy: \"blink\";q=1;w=1;pk=:YSBoYXNo:, \"odd\";q=2;w=2;pk=:YSBoYXNo:\r\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if cap(line) != 256 {
		t.Error("the memory that was handed in was not used")
	}
	var none fasthttp.ResponseHeader
	if wire.SetRateLimit(&none, nil, nil); strings.Contains(none.String(), "RateLimit") {
		t.Errorf("%q", none.String())
	}
}

// Of several full limits all are named, of none none.
func TestAppendViolated(t *testing.T) {
	full := func(name string, remaining int) wire.Limit {
		return wire.Limit{TierState: throttle.TierState{Tier: throttle.Tier{Name: name}, Remaining: remaining}}
	}
	for want, limits := range map[string][]wire.Limit{
		`"violated-policies":[]`:        {full("a", 1)},
		`"violated-policies":["a","c"]`: {full("a", 0), full("b", 2), full("c", 0)},
	} {
		if got := string(wire.AppendViolated(nil, limits)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A verdict without a limit says null.
func TestNothingToWaitFor(t *testing.T) {
	v := throttle.Verdict{Allowed: true, Now: now, RetryAt: now}
	const want = `"limit":null,"wait_ms":0,"retry_at":"2026-11-20T12:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z","limits":[],"degraded":false`
	if got := string(wire.AppendVerdict(nil, &v, nil)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	v.Degraded = true
	if got := string(wire.AppendVerdict(nil, &v, nil)); !strings.HasSuffix(got, `"degraded":true`) {
		t.Errorf("of a degraded verdict: %s", got)
	}
}

// verdict is what the next send is told at a moment, after one at another.
func verdict(t *testing.T, policy string, sent, at int64) throttle.Verdict {
	t.Helper()
	p := throttletest.Policy(t, policy)
	state, _, _ := p.Take(nil, throttle.Admission{ID: throttle.NewID(), At: sent})
	return p.Peek(state, at)
}
