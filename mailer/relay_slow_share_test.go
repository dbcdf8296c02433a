package mailer

import (
	"testing"
	"time"
)

// TestWhoIsHurried: of those who name a recipient, whoever finds the share
// full; never DATA, and no group without RCPT.
func TestWhoIsHurried(t *testing.T) {
	share := newSlowShare(2)
	for i, want := range []bool{true, true, false} {
		if got := share.enter(); got != want {
			t.Errorf("the %d. enters: %v, want %v", i+1, got, want)
		}
	}
	share.leave()
	if !share.enter() {
		t.Error("a place given back is not free")
	}
	c := &smtpConn{opener: newOpener(RelayURL{}, Options{CommandTimeout: 10 * time.Second, RCPTTimeout: 5 * time.Second})}
	for _, row := range []struct {
		step              Step
		ordinary, hurried time.Duration
	}{
		{StepRSET, 10 * time.Second, time.Second},
		{StepMAIL, 10 * time.Second, time.Second},
		{StepRCPT, 5 * time.Second, time.Second},
		{StepDATA, 10 * time.Second, 10 * time.Second},
	} {
		c.hurried = false
		ordinary := c.timeout(row.step)
		c.hurried = true
		if hurried := c.timeout(row.step); ordinary != row.ordinary || hurried != row.hurried {
			t.Errorf("%s: %v, hurried %v, want %v and %v", row.step, ordinary, hurried, row.ordinary, row.hurried)
		}
	}
	if namesRecipient([]command{{step: StepRSET}, {step: StepMAIL}}) || !namesRecipient([]command{{step: StepMAIL}, {step: StepRCPT}}) {
		t.Error("a group names a recipient exactly if RCPT is in it")
	}
}
