package redisx

import (
	"testing"
	"time"
)

func TestClock_Answers_ToldByTheQuickest(t *testing.T) {
	t.Parallel()
	const unknown = -1000 * time.Hour
	type answer struct{ told, took time.Duration } // how far ahead of this machine it is when it arrives, and how long it took
	for name, tt := range map[string]struct {
		answers []answer
		want    time.Duration
	}{
		"none":                     {want: unknown},
		"one":                      {[]answer{{-time.Second, 2 * time.Second}}, -time.Second},
		"a slow one, a quick one":  {[]answer{{-time.Second, 2 * time.Second}, {0, 0}}, 0},
		"a quick one, a slow one":  {[]answer{{0, 0}, {-time.Second, 2 * time.Second}}, 0},
		"the clock was set back":   {[]answer{{0, 0}, {-time.Hour, 0}}, -time.Hour},
		"the clock was set ahead":  {[]answer{{0, 0}, {time.Hour, 0}}, time.Hour},
		"set back, as a slow told": {[]answer{{0, 0}, {-time.Hour, time.Second}}, -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var c Clock
			for _, a := range tt.answers {
				now := time.Now()
				c.Hear(now.Add(a.told).UnixMilli(), now.Add(-a.took))
			}
			now := c.Now()
			if known := now != 0; known != (tt.want != unknown) {
				t.Fatalf("the clock is at %d", now)
			} else if ahead := time.Until(time.UnixMilli(now)); known && (ahead-tt.want).Abs() > 500*time.Millisecond {
				t.Errorf("the clock is %v ahead, want %v", ahead, tt.want)
			}
		})
	}
}
