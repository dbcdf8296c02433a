package throttle_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func TestNewCounter_WrongParameters_SaysWhy(t *testing.T) {
	tier := throttle.Tier{Name: "minute", Limit: 5, Window: minute}
	fixed := func(t throttle.Tier) error { _, err := throttle.NewFixedWindow(t); return err }
	sliding := func(t throttle.Tier, parts int) error { _, err := throttle.NewSlidingWindow(t, parts); return err }
	token := func(t throttle.Tier, burst int) error { _, err := throttle.NewTokenBucket(t, burst); return err }
	leaky := func(t throttle.Tier, queue int) error { _, err := throttle.NewLeakyBucket(t, queue); return err }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fixed(throttle.Tier{Name: "", Limit: 5, Window: minute}), "a tier has no name; write it as name=limit/window"},
		{fixed(throttle.Tier{Name: "minute", Limit: 0, Window: minute}), "tier minute: the limit must be between 1 and 1000000000, not 0"},
		{fixed(throttle.Tier{Name: "minute", Limit: 1_000_000_001, Window: minute}), "tier minute: the limit must be between 1 and 1000000000, not 1000000001"},
		{fixed(throttle.Tier{Name: "minute", Limit: 5, Window: 60}), "tier minute: the window must be whole milliseconds, not 60ns"},
		{fixed(throttle.Tier{Name: "minute", Limit: 5}), "tier minute: the window must be between 1ms and 87840h, not 0s"},
		{sliding(tier, -1), "tier minute: a window has between 1 and 1000 parts, not -1"},
		{sliding(tier, 1001), "tier minute: a window has between 1 and 1000 parts, not 1001"},
		{sliding(throttle.Tier{Name: "m", Window: minute}, 1), "tier m: the limit must be between 1 and 1000000000, not 0"},
		{token(tier, -1), "tier minute: there must be room for 1 to 1000000000 sends, not -1"},
		{token(throttle.Tier{Name: "m", Limit: 1_000_000, Window: longest}, 0), "tier m: the window is too long for this limit"},
		{token(throttle.Tier{Name: "m", Limit: 1_000_000, Window: longest}, 1), "tier m: the window is too long for this limit"},
		{leaky(tier, -1), "tier minute: the queue must be 0 to 999999999 sends, not -1"},
		{leaky(tier, 1_000_000_000), "tier minute: the queue must be 0 to 999999999 sends, not 1000000000"},
	} {
		if fmt.Sprint(tt.err) != tt.want {
			t.Errorf("\n got %v\nwant %s", tt.err, tt.want)
		}
	}
}

func TestAlgorithms_InMemory_KeepTheContract(t *testing.T) {
	throttletest.Run(t, throttletest.Local(t, ""), throttletest.Length(20_000, 1_000_000))
}

// The bytes of a state, as the comment of each algorithm says.
func TestState_Bytes_AreAsDocumented(t *testing.T) {
	const first, second = "\x00\x00\x00\x00\x00\x0a", "\x00\x00\x00\x00\x00\x14"
	const ten = "\x00\x00\x00\x00\x00\x00\x00\x0a"
	a := throttle.Admission{ID: throttle.ID([]byte("AAAAAAAA")), At: 10}
	b := throttle.Admission{ID: throttle.ID([]byte("BBBBBBBB")), At: 20}
	counters := throttletest.Counters(t, "t=5/6ms")
	for _, tt := range []struct {
		name string
		by   throttle.Algorithm
		all  []throttle.Admission
		want string
	}{
		{"a log", throttletest.Policy(t, "t=5/100ms"), []throttle.Admission{a, b}, first + "AAAAAAAA" + second + "BBBBBBBB"},
		{"a log that forgot", throttletest.Policy(t, "t=5/7ms"), []throttle.Admission{a, b}, second + "BBBBBBBB"},
		{"a fixed window", counters["fixed window"], []throttle.Admission{a, a}, "\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x02"},
		{"a sliding window", counters["sliding window"], []throttle.Admission{a, a}, ten + "\x00\x00\x00\x02"},
		{"a token bucket", counters["token bucket"], []throttle.Admission{a}, ten + "\x00\x00\x00\x00\x00\x00\x00\x06"},
		{"a leaky bucket", counters["leaky bucket"], []throttle.Admission{a}, ten + "\x00\x00\x00\x00\x00\x00\x00\x06"},
	} {
		var state []byte
		for _, one := range tt.all {
			state, _ = tt.by.Take(state, one)
		}
		if string(state) != tt.want {
			t.Errorf("%s is %x, want %x", tt.name, state, tt.want)
		}
	}
	// Of the parts without sends only the newest stays.
	sliding := throttletest.Counters(t, "t=5/60s")["sliding window"]
	state := sliding.Record(sliding.Record(nil, a, 10), throttle.Admission{At: 20_000}, 20_000)
	state, _ = sliding.Release(state, a)
	state, _ = sliding.Release(state, throttle.Admission{At: 20_000})
	if want := "\x00\x00\x00\x00\x00\x00\x4e\x20\x00\x00\x00\x00"; string(state) != want {
		t.Errorf("a sliding window without sends is %x, want %x", state, want)
	}
}

// A part that is full stays full.
func TestRecord_FullPart_CountsNoFurther(t *testing.T) {
	sliding := throttletest.Counters(t, "t=5/60s")["sliding window"]
	full := "\x00\x00\x00\x00\x00\x00\x4e\x20\xff\xff\xff\xff"
	if next := sliding.Record([]byte(full), throttle.Admission{At: 20_000}, 20_000); string(next) != full {
		t.Errorf("after one more: %x", next)
	}
}

// What each counter answers, by hand: of each step the moment, and whether it is admitted, the wait
// and the delay.
func TestCounters_Steps_AnswerAsDocumented(t *testing.T) {
	tier := throttle.Tier{Name: "minute", Limit: 6, Window: minute} // one each 10 s
	window := throttletest.Counters(t, "minute=2/60s")              // in parts of 10 s
	token, _ := throttle.NewTokenBucket(tier, 2)
	leaky, _ := throttle.NewLeakyBucket(tier, 2)
	for _, tt := range []struct {
		by   throttle.Algorithm
		want string
	}{
		{window["fixed window"], "50000 true 0 0, 50000 true 10000 0, 59999 false 1 0, 60000 true 0 0, 60000 true 60000 0, 1 false 60000 0"},
		{window["sliding window"], "5000 true 0 0, 30000 true 39999 0, 69998 false 1 0, 69999 true 30000 0, 99999 true 30000 0, 0 false 39999 0"},
		{token, "0 true 0 0, 0 true 10000 0, 9999 false 1 0, 10000 true 10000 0, 30000 true 0 0, 30000 true 10000 0, 0 false 10000 0"},
		{leaky, "0 true 0 0, 1000 true 0 9000, 2000 true 8000 18000, 2000 false 8000 0, 10000 true 10000 20000, 50000 true 0 0"},
	} {
		var state []byte
		got := ""
		for step := range strings.SplitSeq(tt.want, ", ") {
			var at int64
			if _, err := fmt.Sscan(step, &at); err != nil {
				t.Fatal(err)
			}
			next, v := tt.by.Take(state, throttle.Admission{At: at})
			got += fmt.Sprintf(", %d %v %d %d", at, v.Allowed, v.Wait, v.Delay)
			state = next
		}
		if got[2:] != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.by, got[2:], tt.want)
		}
	}
}

// Whatever a state holds, no step panics or changes it in place.
func FuzzAlgorithms(f *testing.F) {
	f.Add([]byte(nil), int64(0), int64(0))
	f.Add(bytes.Repeat([]byte{0xff}, 42), int64(1<<62), int64(-1<<62))
	f.Add([]byte("\x00\x00\x00\x00\x00\x0aAAAAAAAA"), int64(10), int64(20))
	algorithms := []throttle.Algorithm{throttletest.Policy(f, usual)}
	for _, a := range throttletest.Counters(f, "minute=3/60s") {
		algorithms = append(algorithms, a)
	}
	f.Fuzz(func(t *testing.T, state []byte, at, now int64) {
		one := throttle.Admission{ID: throttle.NewID(), At: at}
		for _, a := range algorithms {
			before := bytes.Clone(state)
			a.Take(state, one)
			a.Peek(state, now)
			a.Release(state, one)
			a.Record(state, one, now)
			a.Expires(state)
			if !bytes.Equal(before, state) {
				t.Fatalf("%s changed the state %x to %x", a, before, state)
			}
		}
	})
}

// The longest window and the largest limit count as the others do.
func TestCounters_Extremes_CountRight(t *testing.T) {
	window := must.Get(throttle.NewTokenBucket(throttle.Tier{Name: "t", Limit: 14_000, Window: longest}, 1))(t)
	fast := must.Get(throttle.NewTokenBucket(throttle.Tier{Name: "t", Limit: 1_000_000_000, Window: time.Millisecond}, 1))(t)
	if _, err := throttle.NewTokenBucket(throttle.Tier{Name: "t", Limit: 1, Window: time.Millisecond}, 1_000_000_000); err != nil {
		t.Error(err)
	}
	const now = 1 << 45
	for _, tt := range []struct {
		by   throttle.Algorithm
		wait int64
	}{{window, longest.Milliseconds()/14_000 + 1}, {fast, 1}} {
		state, v := tt.by.Take(nil, throttle.Admission{ID: throttle.NewID(), At: now})
		if !v.Allowed || v.Wait != tt.wait {
			t.Errorf("%s waits %d, want %d", tt.by, v.Wait, tt.wait)
		}
		if tt.by.Peek(state, now+tt.wait-1).Allowed || !tt.by.Peek(state, now+tt.wait).Allowed {
			t.Errorf("%s does not admit at the end of its wait", tt.by)
		}
	}
}
