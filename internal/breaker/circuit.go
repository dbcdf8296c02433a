package breaker

import "sync"

// Circuit is a Rule at work.
type Circuit struct {
	rule    Rule
	now     func() int64
	changed func(open bool)

	mu    sync.Mutex
	state State
}

// NewCircuit returns a closed Circuit. Now is its clock, in milliseconds. Changed is called when
// it opens and when it closes, and may ask it.
func NewCircuit(r Rule, now func() int64, changed func(open bool)) *Circuit {
	return &Circuit{rule: r, now: now, changed: changed}
}

// Ask takes a pass; every pass that is OK must be settled.
func (c *Circuit) Ask() Pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p Pass
	c.state, p = c.rule.Ask(c.state, c.now())
	return p
}

// Rest is for how many milliseconds no call passes; while a trial is under way, which may end
// earlier, when to ask again.
func (c *Circuit) Rest() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, p := c.rule.Ask(c.state, c.now())
	return p.Wait
}

// Open reports whether it has opened, and no trial has closed it since. It may be open when
// the cooldown is over, before a trial has ended.
func (c *Circuit) Open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Open()
}

// Settle records the outcome of a pass.
func (c *Circuit) Settle(p Pass, o Outcome) {
	c.mu.Lock()
	before := c.state.Open()
	c.state = c.rule.Settle(c.state, c.now(), p, o)
	after := c.state.Open()
	c.mu.Unlock()
	if before != after {
		c.changed(after)
	}
}
