package throttle_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

func TestVerdictTiers(t *testing.T) {
	v := throttle.Decide(policy(t, "day=3/24h,minute=1/60s"), sends(0, hour), start+hour+second)
	want := []throttle.Standing{
		{Tier: throttle.Tier{Name: "minute", Limit: 1, Window: minute}, Remaining: 0, Wait: 59 * second},
		{Tier: throttle.Tier{Name: "day", Limit: 3, Window: day}, Remaining: 1, Wait: 0},
	}
	if got := v.Tiers(); !slices.Equal(got, want) {
		t.Errorf("tiers %v, want %v", got, want)
	}
	mine := []throttle.Standing{{Tier: throttle.Tier{Name: "mine"}}}
	if got := v.AppendTiers(mine); !slices.Equal(got, append(mine, want...)) {
		t.Errorf("appended %v, want what was there and then %v", got, want)
	}
}

// What a caller does to the tiers it was given changes no later answer.
func TestVerdictTiersAreTheCallers(t *testing.T) {
	v := throttle.Decide(throttle.DefaultPolicy(), nil, start)
	mine := v.Tiers()
	mine[0].Name, mine[0].Limit = "changed", 99
	if got := v.Tiers()[0]; got.Name != "minute" || got.Limit != 1 {
		t.Errorf("a caller changed the verdict's tier to %v", got)
	}
}

func TestZeroVerdict(t *testing.T) {
	var v throttle.Verdict
	if v.Allowed || v.RetryAt() != 0 || len(v.Tiers()) != 0 {
		t.Errorf("the zero verdict is a yes or has tiers: %s", spell(v))
	}
}

// A verdict on one count names its quota where somebody has to wait, and counts from the
// moment that counts.
func TestAReadingSpelt(t *testing.T) {
	quota := throttle.Tier{Name: "minute", Limit: 5, Window: 60_000}
	for _, tt := range []struct {
		r       throttle.Reading
		limit   string
		retryAt int64
	}{
		{throttle.Reading{Answer: throttle.Answer{Allowed: true, Remaining: 4}, Delay: 7, Clock: 1000}, "", 1000},
		{throttle.Reading{Wait: 500, Clock: 1000}, "minute", 1500},
		{throttle.Reading{Answer: throttle.Answer{Allowed: true}, Wait: 500, Clock: 9000}, "minute", 9500}, // the clock stepped back
	} {
		var v throttle.Verdict
		tt.r.Spell(&v, &quota, 1000)
		if v.Allowed != tt.r.Allowed || v.Wait != tt.r.Wait || v.Delay != tt.r.Delay || v.Now != 1000 || v.Limit != tt.limit || v.RetryAt() != tt.retryAt {
			t.Errorf("%+v: %+v, to be retried at %d", tt.r, v, v.RetryAt())
		}
		want := throttle.Standing{Tier: quota, Remaining: int(tt.r.Remaining), Wait: tt.r.Wait}
		if tiers := v.Tiers(); len(tiers) != 1 || tiers[0] != want {
			t.Errorf("%+v: tiers %v, want %v", tt.r, tiers, want)
		}
	}
}

// A mailbox is a newcomer again when its last send has left the longest window.
func TestForgottenAt(t *testing.T) {
	two := policy(t, "minute=1/60s,hour=5/1h")
	h := sends(0, 10*minute)
	for name, tt := range map[string]struct {
		history throttle.History
		but     throttle.ID
		now     int64
		want    int64
	}{
		"the last":               {h, throttle.ID{}, start + 11*minute, start + 70*minute},
		"but for the last":       {h, h[1].ID, start + 11*minute, start + 60*minute},
		"but for the first":      {h, h[0].ID, start + 11*minute, start + 70*minute},
		"the first has gone":     {h, h[1].ID, start + hour, start + hour},
		"none":                   {nil, throttle.ID{}, start, start},
		"the clock stepped back": {h, throttle.ID{}, start - day, start + 70*minute},
	} {
		if at, known := throttle.Decide(two, tt.history, tt.now).ForgottenAt(tt.but); at != tt.want || !known {
			t.Errorf("%s: %d ms after the start, %v, want %d", name, at-start, known, tt.want-start)
		}
	}
	var v throttle.Verdict
	throttle.Reading{Answer: throttle.Answer{Allowed: true}, Clock: start}.Spell(&v, &throttle.Tier{}, start)
	if _, known := v.ForgottenAt(throttle.ID{}); known {
		t.Error("it is known of a limiter that keeps no history")
	}
}

// A history of one send makes the same verdict however it is told, and the verdict takes no
// more memory than its tiers do.
func TestSpellOne(t *testing.T) {
	only := sends(0)[0]
	for _, text := range []string{usual, "minute=1/60s", "minute=2/60s", "short=1/1s,long=1/4s", "now=1/1ms,decade=1/87840h", ""} {
		p := policy(t, text)
		for _, after := range []int64{-day, -1, 0, 1, second - 1, second, minute - 1, minute, hour, day - 1, day, throttle.MaxWindow} {
			var one, of throttle.Verdict
			p.SpellOne(&one, only, start+after)
			p.Spell(&of, throttle.History{only}, start+after)
			if got, want := told(one, only.ID), told(of, only.ID); got != want {
				t.Errorf("%s after %d\n got %s\nwant %s", text, after, got, want)
			}
		}
	}
	p := policy(t, usual)
	var room [3]throttle.Standing
	if n := testing.AllocsPerRun(100, func() {
		var v throttle.Verdict
		p.SpellOne(&v, only, start)
		if v.AppendTiers(room[:0]); v.Allowed || v.Sent() != 1 {
			t.Error("it is not a no after one send")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// told is all that a verdict says.
func told(v throttle.Verdict, id throttle.ID) string {
	at, known := v.ForgottenAt(throttle.ID{})
	but, _ := v.ForgottenAt(id)
	return fmt.Sprint(spell(v), v.Allowed, v.Now, v.RetryAt(), v.Sent(), at, but, known)
}

// A larger one, or one of more fields, the compiler hands on in memory and copies several
// times, which takes a tenth of a decision.
func TestAReadingFitsIntoRegisters(t *testing.T) {
	r := reflect.TypeFor[throttle.Reading]()
	if r.Size() > 32 || r.NumField() > 4 {
		t.Errorf("%d bytes, %d fields", r.Size(), r.NumField())
	}
}
