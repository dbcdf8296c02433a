package client

import (
	"errors"
	"strconv"
	"time"
)

// A Standing is how a mailbox or an action stands with its limits.
type Standing struct {
	// Rule and Limit are what the next one has to wait for longest; empty if nothing.
	Rule, Limit string
	// Wait is how long, and RetryAt when that is over by the clock of mailgate. Count
	// down by Wait: the clock here may be another.
	Wait    time.Duration
	RetryAt time.Time
	// ServerTime is when this was decided.
	ServerTime time.Time
	// Limits are all limits of the mailbox or action, the shortest window first.
	Limits []Limit
	// Degraded says that a mailgate decided which cannot reach the others' history.
	Degraded bool
	// Countdown is a token with which a browser may ask how long the wait still is. Empty
	// if mailgate gave none.
	Countdown string
}

// A Limit is one of the limits of a mailbox or action.
type Limit struct {
	Name      string
	Limit     int           // how many in the window
	Window    time.Duration //
	Remaining int           // how many more now
	Wait      time.Duration // until it admits one more; 0 if it does now
}

// standingJSON is a Standing as it is written in every answer.
type standingJSON struct {
	Rule       *string    `json:"rule"`
	Limit      *string    `json:"limit"`
	Wait       millis     `json:"wait_ms"`
	RetryAt    time.Time  `json:"retry_at"`
	ServerTime time.Time  `json:"server_time"`
	Limits     limitsJSON `json:"limits"`
	Degraded   bool       `json:"degraded"`
	Countdown  string     `json:"countdown"`
}

type limitsJSON []struct {
	Name      string `json:"name"`
	Limit     int    `json:"limit"`
	Window    millis `json:"window_ms"`
	Remaining int    `json:"remaining"`
	Wait      millis `json:"wait_ms"`
}

func (j limitsJSON) limits() (all []Limit) {
	for _, l := range j {
		all = append(all, Limit{l.Name, l.Limit, time.Duration(l.Window), l.Remaining, time.Duration(l.Wait)})
	}
	return all
}

// whole reports whether there was one: every Standing has a time.
func (j *standingJSON) whole() bool { return !j.ServerTime.IsZero() }

// standing is what was written.
func (j *standingJSON) standing() Standing {
	return Standing{
		Rule: value(j.Rule), Limit: value(j.Limit), Wait: time.Duration(j.Wait), RetryAt: j.RetryAt,
		ServerTime: j.ServerTime, Limits: j.Limits.limits(), Degraded: j.Degraded, Countdown: j.Countdown,
	}
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// millis is a length of time that is written in milliseconds.
type millis time.Duration

var errMillis = errors.New("not a length of time in milliseconds")

// maxMillis is what a time.Duration can hold.
const maxMillis = int64(1<<63-1) / int64(time.Millisecond)

// UnmarshalJSON takes whole numbers only.
func (m *millis) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n < 0 || n > maxMillis {
		return errMillis
	}
	*m = millis(time.Duration(n) * time.Millisecond)
	return nil
}
