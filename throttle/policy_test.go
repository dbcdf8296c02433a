package throttle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

const (
	usual   = "minute=1/60s,hour=5/1h,day=10/24h"
	minute  = time.Minute
	hour    = time.Hour
	day     = 24 * time.Hour
	longest = 3660 * day
)

// Every policy that is refused, and the whole sentence that says why.
func TestNewPolicy_Wrong_SaysWhy(t *testing.T) {
	type tiers = []throttle.Tier
	var crowd tiers
	for i := range 17 {
		crowd = append(crowd, throttle.Tier{Name: "t" + string(rune('a'+i)), Limit: 1, Window: time.Duration(1+i) * time.Millisecond})
	}
	tests := []struct {
		name  string
		tiers tiers
		want  string
	}{
		{"no tiers", nil, "a policy needs at least one tier, such as minute=1/60s"},
		{"too many tiers", crowd, "a policy has at most 16 tiers, not 17"},

		{"no name", tiers{{"", 1, minute}}, "a tier has no name; write it as name=limit/window"},
		{"a long name", tiers{{strings.Repeat("n", 33), 1, minute}},
			`tier "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn…": a name has at most 32 characters`},
		{"a capital", tiers{{"Minute", 1, minute}}, `tier "Minute": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{"a digit first", tiers{{"1m", 1, minute}}, `tier "1m": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{"a hyphen first", tiers{{"-m", 1, minute}}, `tier "-m": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{"a space", tiers{{"per minute", 1, minute}}, `tier "per minute": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{"a quote", tiers{{`m"`, 1, minute}}, `tier "m\"": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{"a line end", tiers{{"m\r\n", 1, minute}}, `tier "m\r\n": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{"another alphabet", tiers{{"分", 1, minute}}, `tier "分": a name is lower-case letters, digits, - and _, and starts with a letter`},

		{"limit 0", tiers{{"minute", 0, minute}}, "tier minute: the limit must be between 1 and 1000, not 0"},
		{"a negative limit", tiers{{"minute", -1, minute}}, "tier minute: the limit must be between 1 and 1000, not -1"},
		{"a limit too large", tiers{{"minute", 1001, minute}}, "tier minute: the limit must be between 1 and 1000, not 1001"},
		{"window 0", tiers{{"minute", 1, 0}}, "tier minute: the window must be between 1ms and 87840h, not 0s"},
		{"a negative window", tiers{{"minute", 1, -minute}}, "tier minute: the window must be between 1ms and 87840h, not -60s"},
		{"nanoseconds", tiers{{"minute", 1, 60_000}}, "tier minute: the window must be whole milliseconds, not 60µs"},
		{"a window too long", tiers{{"minute", 1, longest + time.Millisecond}}, "tier minute: the window must be between 1ms and 87840h, not 316224000001ms"},

		{"a name twice", tiers{{"minute", 1, minute}, {"minute", 5, hour}}, "tier minute: the name is used twice"},
		{"a window twice", tiers{{"minute", 1, minute}, {"sixty", 5, minute}}, "tier sixty: tier minute has the same window, 60s"},
		{"a tier that can never fill", tiers{{"minute", 6, minute}, {"hour", 5, hour}},
			"tier minute: 6 sends in 60s can never be reached while tier hour allows 5 in 1h"},
		{"the same, written the other way round", tiers{{"hour", 5, hour}, {"minute", 6, minute}},
			"tier minute: 6 sends in 60s can never be reached while tier hour allows 5 in 1h"},
		{"the wrong one of three", tiers{{"minute", 1, minute}, {"hour", 50, hour}, {"day", 10, day}},
			"tier hour: 50 sends in 1h can never be reached while tier day allows 10 in 24h"},
		{"one of many", tiers{{"minute", 1, minute}, {"hour", 5, hour}, {"day", 0, day}}, "tier day: the limit must be between 1 and 1000, not 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := throttle.NewPolicy(tt.tiers...)
			if err == nil || err.Error() != tt.want {
				t.Errorf("\n got %v\nwant %s", err, tt.want)
			}
			if !p.IsZero() {
				t.Errorf("a refused policy is %s", p)
			}
		})
	}
}

func TestNewPolicy_Right_Sorts(t *testing.T) {
	type tiers = []throttle.Tier
	tests := []struct {
		name    string
		tiers   tiers
		text    string
		longest time.Duration
	}{
		{"one tier", tiers{{"minute", 1, minute}}, "minute=1/60s", minute},
		{"sorted by window", tiers{{"day", 10, day}, {"minute", 1, minute}, {"hour", 5, hour}}, usual, day},
		{"one limit for two windows", tiers{{"minute", 5, minute}, {"hour", 5, hour}}, "minute=5/60s,hour=5/1h", hour},
		{"the smallest", tiers{{"m", 1, time.Millisecond}}, "m=1/1ms", time.Millisecond},
		{"the largest", tiers{{"a" + strings.Repeat("-_09z", 6) + "z", 1000, longest}},
			"a-_09z-_09z-_09z-_09z-_09z-_09zz=1000/87840h", longest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := throttle.NewPolicy(tt.tiers...)
			if err != nil {
				t.Fatal(err)
			}
			if p.String() != tt.text || p.Longest() != tt.longest.Milliseconds() || p.IsZero() {
				t.Errorf("%s, longest %d; want %s, %d", p, p.Longest(), tt.text, tt.longest)
			}
		})
	}
}

func TestDefaultPolicy_PassesItsOwnCheck(t *testing.T) {
	if got := throttle.DefaultPolicy(); got.String() != usual {
		t.Errorf("the default is %s, want %s", got, usual)
	}
	if _, err := throttle.NewPolicy(throttle.DefaultPolicy().Tiers()...); err != nil {
		t.Errorf("the default does not pass its own check: %v", err)
	}
}

func TestPolicy_Zero_HasNoTiers(t *testing.T) {
	var p throttle.Policy
	if !p.IsZero() || p.Longest() != 0 || len(p.Tiers()) != 0 || p.String() != "" {
		t.Errorf("the zero policy: zero %v, longest %d, tiers %v, text %q", p.IsZero(), p.Longest(), p.Tiers(), p)
	}
}

// A policy never changes: neither by what it was made of nor by what it hands out.
func TestPolicy_CallersSlices_NeverChangeIt(t *testing.T) {
	given := []throttle.Tier{{Name: "hour", Limit: 5, Window: hour}, {Name: "minute", Limit: 1, Window: minute}}
	asGiven := slices.Clone(given)
	p, err := throttle.NewPolicy(given...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(given, asGiven) {
		t.Errorf("the caller's tiers were changed to %v", given)
	}
	given[0].Limit = 99
	p.Tiers()[0].Limit = 99
	if got := p.String(); got != "minute=1/60s,hour=5/1h" {
		t.Errorf("the policy changed to %s", got)
	}
}
