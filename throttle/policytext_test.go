package throttle_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Every text that is refused for how it is written, and the whole sentence that says
// why. What NewPolicy refuses is in TestNewPolicy_Wrong_SaysWhy.
func TestParsePolicy_Wrong_SaysWhy(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "a policy needs at least one tier, such as minute=1/60s"},
		{" \t\n", "a policy needs at least one tier, such as minute=1/60s"},
		{strings.Repeat(",", 16), "a policy has at most 16 tiers, not 17"},
		{strings.Repeat("a=1/1s,", 40) + "a=1/1s", "a policy has at most 16 tiers, not 41"},

		{"minute", `tier "minute": write it as name=limit/window, such as minute=1/60s`},
		{"minute=1", `tier "minute=1": write it as name=limit/window, such as minute=1/60s`},
		{"1/60s", `tier "1/60s": write it as name=limit/window, such as minute=1/60s`},
		{"minute=1/60s,", `tier "": write it as name=limit/window, such as minute=1/60s`},
		{",minute=1/60s", `tier "": write it as name=limit/window, such as minute=1/60s`},
		{"minute=1/60s;hour=5/1h", `tier minute: the window "60s;hour=5/1h" is not a length of time such as 400ms, 60s or 24h`},
		{strings.Repeat("x", 100), `tier "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…": write it as name=limit/window, such as minute=1/60s`},

		{"=1/60s", "a tier has no name; write it as name=limit/window"},
		{"Minute=1/60s", `tier "Minute": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{"m\r\n=one/60s", `tier "m\r\n": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{"minute =1/60s", `tier "minute ": a name is lower-case letters, digits, - and _, and starts with a letter`},

		{"minute=/60s", `tier minute: the limit "" is not a whole number`},
		{"minute=one/60s", `tier minute: the limit "one" is not a whole number`},
		{"minute=1.5/60s", `tier minute: the limit "1.5" is not a whole number`},
		{"minute= 1/60s", `tier minute: the limit " 1" is not a whole number`},
		{"minute=0x1/60s", `tier minute: the limit "0x1" is not a whole number`},
		{"minute=0/60s", "tier minute: the limit must be between 1 and 1000, not 0"},
		{"minute=-1/60s", "tier minute: the limit must be between 1 and 1000, not -1"},
		{"minute=99999999999999999999/60s", `tier minute: the limit "99999999999999999999" is too large`},

		{"minute=1/", `tier minute: the window "" is not a length of time such as 400ms, 60s or 24h`},
		{"minute=1/60", `tier minute: the window "60" is not a length of time such as 400ms, 60s or 24h`},
		{"minute=1/1d", `tier minute: the window "1d" is not a length of time such as 400ms, 60s or 24h`},
		{"minute=1/60s/2", `tier minute: the window "60s/2" is not a length of time such as 400ms, 60s or 24h`},
		{"minute=1/9999999999h", `tier minute: the window "9999999999h" is not a length of time such as 400ms, 60s or 24h`},
		{"minute=1/1us", `tier minute: the window "1us" is not a whole number of milliseconds`},
		{"minute=1/1.0005s", `tier minute: the window "1.0005s" is not a whole number of milliseconds`},
		{"minute=1/0s", "tier minute: the window must be between 1ms and 87840h, not 0s"},
		{"minute=1/-60s", "tier minute: the window must be between 1ms and 87840h, not -60s"},
		{"minute=1/87841h", "tier minute: the window must be between 1ms and 87840h, not 87841h"},
		{"minute=1/60s,minute=5/1h", "tier minute: the name is used twice"},
		{"minute=1/60s,m=1/1m", "tier m: tier minute has the same window, 60s"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			p, err := throttle.ParsePolicy(tt.text)
			if err == nil || err.Error() != tt.want {
				t.Errorf("\n got %v\nwant %s", err, tt.want)
			}
			if !p.IsZero() {
				t.Errorf("a refused policy is %s", p)
			}
		})
	}
}

// What is accepted, and how the policy then writes itself.
func TestParsePolicy_Right_WritesItself(t *testing.T) {
	many := "t1=1/1s" // as many tiers as there may be
	for i := 2; i <= 16; i++ {
		many += fmt.Sprintf(",t%d=1/%ds", i, i)
	}
	tests := []struct{ text, want string }{
		{usual, usual},
		{"day=10/24h,minute=1/60s,hour=5/1h", usual},
		{" minute=1/60s ,\thour=5/1h,\n day=10/24h ", usual},
		{"minute=1/1m,hour=5/60m,day=10/1440m", usual},
		{"minute=1/60000ms,hour=5/3600s,day=10/23h59m60s", usual},
		{"minute=+1/60s", "minute=1/60s"},
		{"minute=0001/60s", "minute=1/60s"},
		{"short=1/400ms", "short=1/400ms"},
		{"short=1/1.5s", "short=1/1500ms"},
		{"short=1/1m30s", "short=1/90s"},
		{"short=1/2m", "short=1/2m"},
		{"short=1/90m", "short=1/90m"},
		{"short=1/1h0m0.001s", "short=1/3600001ms"},
		{"a=1/1s,b=1/2s,c=2/3s", "a=1/1s,b=1/2s,c=2/3s"},
		{many, many},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			p, err := throttle.ParsePolicy(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if p.String() != tt.want {
				t.Errorf("reads as %s, want %s", p, tt.want)
			}
			again, err := throttle.ParsePolicy(p.String())
			if err != nil || again.String() != tt.want {
				t.Errorf("read once more: %s, %v", again, err)
			}
		})
	}
}

// The text form is exact for every length a window can have.
func TestTier_EveryWindow_ReadsAsWritten(t *testing.T) {
	for _, ms := range []time.Duration{1, 999, 1000, 1001, 59_999, 60_000, 60_001, 119_000, 120_000, 3_540_000, 3_599_999,
		3_600_000, 3_600_001, 3_660_000, 86_400_000, 90_000_000, longest/time.Millisecond - 1, longest / time.Millisecond} {
		tier := throttle.Tier{Name: "t", Limit: 1, Window: ms * time.Millisecond}
		p, err := throttle.ParsePolicy(tier.String())
		if err != nil {
			t.Errorf("%s: %v", tier, err)
			continue
		}
		if got := p.Tiers()[0]; got != tier {
			t.Errorf("%s is read as %s, want %s", tier, got.Window, tier.Window)
		}
	}
}

// A hostile text costs no more than a few looks at it and one copy, and its sentence
// stays short.
func TestParsePolicy_LongText_CostsLittle(t *testing.T) {
	length := throttletest.Length(1<<20, 10<<20)
	for name, unit := range map[string]string{
		"commas": ",", "names": "a", "tiers": "a=1/1s,", "limits": "9", "bad bytes": "\xff", "spaces": " ", "equals": "=", "hours": "1h",
	} {
		for _, place := range []string{"%s", "%s=1/60s", "minute=%s/60s", "minute=1/%s", "minute=1/60s,%s"} {
			t.Run(name+" in "+place, func(t *testing.T) {
				text := fmt.Sprintf(place, strings.Repeat(unit, length/len(unit)))
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				allocated, began := memory.TotalAlloc, time.Now()
				_, err := throttle.ParsePolicy(text)
				took := time.Since(began)
				runtime.ReadMemStats(&memory)
				if err == nil || len(err.Error()) > 400 {
					t.Errorf("the answer to %d bytes is %d bytes long", len(text), len(fmt.Sprint(err)))
				}
				if used := memory.TotalAlloc - allocated; took > 2*time.Second || used > 2*uint64(length) {
					t.Errorf("%v and %d bytes of memory", took, used)
				}
			})
		}
	}
}

// What is accepted is written as text that means the same, and nothing panics.
func FuzzParsePolicy(f *testing.F) {
	for _, text := range []string{
		usual, "", ",", "a=1/1ms", "a=1/1s,a=2/2s", "a=1000/87840h", "a=1/1h0m0.001s", "a=+1/.5s", "a=1/60", "A=1/1s",
		"a=99999999999999999999/1s", "a=1/2562047h47m16.854775807s", "a=1/-1s", "a=1/1µs", "\xff=\xff/\xff", "a=1/1s,b=1/1s,c=1/2s",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := throttle.ParsePolicy(text)
		if err != nil {
			if !p.IsZero() || len(err.Error()) > 400 {
				t.Fatalf("refused with %d bytes, and the policy is %q", len(err.Error()), p)
			}
			return
		}
		again, err := throttle.ParsePolicy(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q is %s, which reads as %s, %v", text, p, again, err)
		}
		for i, tier := range p.Tiers() {
			if again.Tiers()[i] != tier {
				t.Fatalf("%q has the tier %v, and written and read again %v", text, tier, again.Tiers()[i])
			}
		}
		if v := p.Peek(nil, 0); !v.Allowed || len(v.Tiers) != len(p.Tiers()) {
			t.Fatalf("%s does not admit a first send: %+v", p, v)
		}
	})
}
