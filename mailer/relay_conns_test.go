package mailer

import (
	"container/list"
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// TestNoPlaceIsLost: a place that is handed over at the very moment at which
// its taker gives up goes back. Which of the two wins is chance.
func TestNoPlaceIsLost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gaveUp := 0
	for range 100 {
		k := &connections{max: 1, open: 1, waiting: list.New()}
		handed := make(chan *smtpConn, 1)
		place := k.waiting.PushBack(handed)
		k.drop() // hands the place to who waits
		if _, err := k.await(patience{ctx: ctx, until: time.Now().Add(time.Hour)}, handed, place); err == nil {
			k.drop()
		} else {
			gaveUp++
		}
		if open, _, waiting := k.counts(); open != 0 || waiting != 0 {
			t.Fatalf("%d places taken and %d waiting, want none", open, waiting)
		}
	}
	if gaveUp == 0 || gaveUp == 100 {
		t.Errorf("gave up %d times of 100: chance had no part in it", gaveUp)
	}
}

// TestArmAfterTheEnd: a cancellation that came before the deadline was set
// must not be lost with it.
func TestArmAfterTheEnd(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	ctx, cancel := context.WithCancel(t.Context())
	p := patience{ctx: ctx, until: time.Now().Add(time.Hour)}
	if err := p.arm(here, time.Minute); err != nil {
		t.Errorf("before: %v", err)
	}
	cancel()
	if err := p.arm(here, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("after: %v", err)
	}
}
