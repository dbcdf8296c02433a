package local

import (
	"context"
	"math"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

func TestBrief(t *testing.T) {
	const start, day = int64(1_800_000_000_000), int64(86_400_000)
	for name, tt := range map[string]struct {
		at      []int64
		expires int64
		brief   bool
	}{
		"one send for a day":       {[]int64{start}, start + day, true},
		"for a second":             {[]int64{start}, start + 1000, true},
		"for 48 days":              {[]int64{start}, start + 48*day, true},
		"the longest":              {[]int64{start}, start + mostSpan, true},
		"a second more":            {[]int64{start}, start + mostSpan + 1000, false},
		"for a part of a second":   {[]int64{start}, start + 1500, false},
		"for a millisecond":        {[]int64{start}, start + 1, false},
		"expired when it was sent": {[]int64{start}, start, false},
		"expired before":           {[]int64{start}, start - 1000, false},
		"never expires":            {[]int64{start}, math.MaxInt64, false},
		"in 1970":                  {[]int64{0}, day, true},
		"before 1970":              {[]int64{-1}, day - 1, false},
		"as late as can be":        {[]int64{mostAt}, mostAt + mostSpan, true},
		"later":                    {[]int64{mostAt + 1}, mostAt + 1001, false},
		"as far as it is":          {[]int64{math.MinInt64}, math.MaxInt64, false},
		"no send":                  {nil, start + day, false},
		"two sends":                {[]int64{start, start}, start + day, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := history(t, tt.at...)
			b := historyCodec{}.Brief(h, tt.expires)
			if brief := b != (cache.Brief{}); brief != tt.brief {
				t.Fatalf("in brief: %v", b)
			}
			for _, now := range []int64{math.MinInt64, -1, 0, start, tt.expires - 1, tt.expires, math.MaxInt64} {
				only, found := onlySend(b, now)
				if want := tt.brief && now < tt.expires; found != want || found && only != h[0] {
					t.Errorf("at %d: %v, %t; want %v, %t", now, only, found, h, want)
				}
			}
		})
	}
}

// A mailbox with one send is refused by what the map has in brief.
func TestANoIsBrief(t *testing.T) {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	const now = int64(1_800_000_000_000)
	policy := throttle.DefaultPolicy()
	limiter, err := New(disk, Options{Policy: policy, Now: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	ctx, id := context.Background(), throttle.NewID()
	for range 3 { // what was only queued is brought in by who asks next
		if _, err := limiter.Take(ctx, "alice@example.com", id); err != nil {
			t.Fatal(err)
		}
	}
	brief, history, found := limiter.histories.glance("", "alice@example.com", now)
	if want := (historyCodec{}).Brief(throttle.History{{ID: id, At: now}}, now+policy.Longest()); brief != want || found {
		t.Errorf("at a glance it is %v, %v, %t; want %v", brief, history, found, want)
	}
	var v throttle.Verdict
	if !limiter.refuses(&v, "alice@example.com", throttle.NewID()) || v.Allowed || v.Wait != 60_000 || v.Sent() != 1 {
		t.Errorf("refused by %+v", v)
	}
	if limiter.refuses(new(throttle.Verdict), "alice@example.com", id) {
		t.Error("what is on record is refused")
	}
}

// Whatever is written in brief reads the same.
func FuzzBrief(f *testing.F) {
	for _, now := range []int64{0, 59_999, 60_000} {
		f.Add(int64(1_800_000_000_000), int64(1_800_000_060_000), 1_800_000_000_000+now, "AAAAaaaa")
	}
	f.Add(int64(mostAt), int64(mostAt+mostSpan), int64(mostAt), "________")
	f.Add(int64(mostAt+1), int64(mostAt+1001), int64(mostAt), "________")
	f.Fuzz(func(t *testing.T, at, expires, now int64, name string) {
		id, err := throttle.ParseID(name)
		if err != nil {
			return
		}
		a := throttle.Admission{ID: id, At: at}
		b := historyCodec{}.Brief(throttle.History{a}, expires)
		only, found := onlySend(b, now)
		if b == (cache.Brief{}) && found || b != (cache.Brief{}) && found != (now < expires) || found && only != a {
			t.Fatalf("%v until %d is %v in brief, which at %d is %v, %t", a, expires, b, now, only, found)
		}
	})
}
