// Package clocktest is a clock for tests of what is handed one.
package clocktest

import "sync/atomic"

// A Clock is a time that a test sets by hand.
type Clock struct{ ms atomic.Int64 }

// New returns a clock that stands at ms.
func New(ms int64) *Clock {
	c := new(Clock)
	c.Set(ms)
	return c
}

// Now is the time as whoever is tested reads it.
func (c *Clock) Now() int64 { return c.ms.Load() }

// Set moves the clock, forwards or back.
func (c *Clock) Set(ms int64) { c.ms.Store(ms) }

// Add moves the clock on by ms.
func (c *Clock) Add(ms int64) { c.ms.Add(ms) }
