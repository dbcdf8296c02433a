package throttle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

const (
	usual   = "minute=1/60s,hour=5/1h,day=10/24h"
	minute  = time.Minute
	longest = 3660 * 24 * time.Hour
)

// Every policy that is refused, and the whole sentence that says why.
func TestParsePolicy_Wrong_SaysWhy(t *testing.T) {
	const written = ": write it as name=limit/window, such as minute=1/60s"
	const named = ": a name is lower-case letters, digits, - and _, and starts with a letter"
	for _, tt := range []struct{ text, want string }{
		{"", "a policy needs at least one tier, such as minute=1/60s"},
		{strings.Repeat("a=1/1s,", 16) + "a=1/1s", "a policy has at most 16 tiers"},
		{"minute", `tier "minute"` + written},
		{"1/60s", `tier "1/60s"` + written},
		{"minute=1/60s,", `tier ""` + written},
		{strings.Repeat("x", 100), `tier "` + strings.Repeat("x", 40) + `…"` + written},

		{"=1/60s", "a tier has no name; write it as name=limit/window"},
		{strings.Repeat("n", 33) + "=1/60s", `tier "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn": a name has at most 32 characters`},
		{"Minute=1/60s", `tier "Minute"` + named},
		{"1m=1/60s", `tier "1m"` + named},
		{"minute =1/60s", `tier "minute "` + named},
		{"m\r\n=one/60s", `tier "m\r\n"` + named},
		{`m"=1/60s`, `tier "m\""` + named},

		{"minute=/60s", `tier minute: the limit "" is not a whole number, or too large`},
		{"minute=1.5/60s", `tier minute: the limit "1.5" is not a whole number, or too large`},
		{"minute=99999999999999999999/60s", `tier minute: the limit "99999999999999999999" is not a whole number, or too large`},
		{"minute=0/60s", "tier minute: the limit must be between 1 and 1000, not 0"},
		{"minute=1001/60s", "tier minute: the limit must be between 1 and 1000, not 1001"},

		{"minute=1/60", `tier minute: the window "60" is not a length of time such as 400ms, 60s or 24h`},
		{"minute=1/60s;hour=5/1h", `tier minute: the window "60s;hour=5/1h" is not a length of time such as 400ms, 60s or 24h`},
		{"minute=1/1us", "tier minute: the window must be whole milliseconds, not 1µs"},
		{"minute=1/0s", "tier minute: the window must be between 1ms and 87840h, not 0s"},
		{"minute=1/316224000001ms", "tier minute: the window must be between 1ms and 87840h, not 316224000001ms"},

		{"minute=1/60s,minute=5/1h", "tier minute: the name is used twice"},
		{"minute=1/60s,m=1/1m", "tier m: tier minute has the same window, 60s"},
		{"hour=5/1h,minute=6/60s", "tier minute: 6 sends in 60s can never be reached while tier hour allows 5 in 1h"},
	} {
		p, err := throttle.ParsePolicy(tt.text)
		if fmt.Sprint(err) != tt.want || len(p.Tiers()) > 0 {
			t.Errorf("%q: %s\n got %v\nwant %s", tt.text, p, err, tt.want)
		}
	}
}

// What is accepted, and how the policy then writes itself.
func TestParsePolicy_Right_WritesItself(t *testing.T) {
	sixteen := "t1=1/1s"
	for i := 2; i <= 16; i++ {
		sixteen += fmt.Sprintf(",t%d=1/%ds", i, i)
	}
	for _, tt := range []struct{ text, want string }{
		{throttle.DefaultPolicy().String(), usual},
		{"day=10/24h,minute=1/60s,hour=5/1h", usual},
		{" minute=1/60s ,\thour=5/1h,\n day=10/24h ", usual},
		{"minute=1/60000ms,hour=5/60m,day=10/23h59m60s", usual},
		{"minute=+01/1m", "minute=1/60s"},
		{"short=1/1.5s", "short=1/1500ms"},
		{"short=1/1m30s", "short=1/90s"},
		{"short=1/2m", "short=1/2m"},
		{"short=1/3600001ms", "short=1/3600001ms"},
		{"minute=5/60s,hour=5/1h", "minute=5/60s,hour=5/1h"},
		{"m=1/1ms", "m=1/1ms"},
		{"a" + strings.Repeat("-_09z", 6) + "z=1000/87840h", "a-_09z-_09z-_09z-_09z-_09z-_09zz=1000/87840h"},
		{sixteen, sixteen},
	} {
		p, err := throttle.ParsePolicy(tt.text)
		if err != nil || p.String() != tt.want {
			t.Errorf("%q reads as %s, %v; want %s", tt.text, p, err, tt.want)
		}
		again, err := throttle.ParsePolicy(p.String())
		if err != nil || !slices.Equal(again.Tiers(), p.Tiers()) {
			t.Errorf("%s reads as %s, %v", p, again, err)
		}
	}
}

// A policy never changes: neither by what it was made of nor by what it returns.
func TestPolicy_CallersSlices_NeverChangeIt(t *testing.T) {
	given := []throttle.Tier{{Name: "hour", Limit: 5, Window: time.Hour}, {Name: "minute", Limit: 1, Window: minute}}
	asGiven := slices.Clone(given)
	p, err := throttle.NewPolicy(given...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(given, asGiven) {
		t.Errorf("the caller's tiers were changed to %v", given)
	}
	given[0].Limit, p.Tiers()[0].Limit = 99, 99
	if got := p.String(); got != "minute=1/60s,hour=5/1h" || p.Window() != 3_600_000 {
		t.Errorf("the policy changed to %s", got)
	}
}

// What is accepted is written as text that means the same, and nothing panics or is long.
func FuzzParsePolicy(f *testing.F) {
	for _, text := range []string{
		usual, "", ",", "a=1/1ms", "a=1/1s,a=2/2s", "a=1000/87840h", "a=1/1h0m0.001s", "a=+1/.5s", "a=1/60", "A=1/1s",
		"a=99999999999999999999/1s", "a=1/2562047h47m16.854775807s", "a=1/-1s", "a=1/1µs", "\xff=\xff/\xff", "a=1/1s,b=1/1s,c=1/2s",
		strings.Repeat("a=1/1s,", 9999), strings.Repeat("x", 9999), "minute=" + strings.Repeat("9", 9999) + "/60s", "minute=1/" + strings.Repeat("1h", 9999),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := throttle.ParsePolicy(text)
		if err != nil {
			if len(p.Tiers()) > 0 || len(err.Error()) > 400 {
				t.Fatalf("refused with %d bytes, and the policy is %q", len(err.Error()), p)
			}
			return
		}
		again, err := throttle.ParsePolicy(p.String())
		if err != nil || !slices.Equal(again.Tiers(), p.Tiers()) {
			t.Fatalf("%q is %s, which reads as %s, %v", text, p, again, err)
		}
		if v := p.Peek(nil, 0); !v.Allowed || len(v.Tiers) != len(p.Tiers()) {
			t.Fatalf("%s does not admit a first send: %+v", p, v)
		}
	})
}
