package relay

import (
	"context"
	"testing"
	"time"
)

func newPool(most, perDomain int) *pool {
	return &pool{max: most, perDomain: perDomain, maxWaiting: 1024, idleTimeout: time.Hour, cooldown: time.Second, now: func() int64 { return 0 }, inUse: map[string]int{}}
}

// queue puts a send for this domain in the queue, as take does.
func queue(p *pool, domain string) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &waiter{domain: domain, slot: make(chan *conn, 1)}
	p.queue = append(p.queue, w)
	return w
}

// Sends are served in order of arrival, but for those whose domain has its share.
func TestPool_Release_ServesInOrderAndByShare(t *testing.T) {
	p := newPool(2, 1)
	for _, domain := range []string{"a", "b"} {
		if _, failure := p.take(t.Context(), time.Now().Add(time.Hour), domain); failure != nil {
			t.Fatal(failure)
		}
	}
	a1, c1, a2, b1 := queue(p, "a"), queue(p, "c"), queue(p, "a"), queue(p, "b")
	for _, step := range []struct {
		does   string
		domain string
		conn   *conn
		want   [4]bool
	}{
		{"b's mail is done", "b", &conn{}, [4]bool{false, true, false, false}},
		{"c's mail is done", "c", &conn{}, [4]bool{false, true, false, true}},
		{"a's mail is done", "a", nil, [4]bool{true, true, false, true}},
		{"b's second is done", "b", &conn{}, [4]bool{true, true, false, true}},
		{"a's second breaks off", "a", nil, [4]bool{true, true, true, true}},
	} {
		p.release(step.conn, step.domain)
		if got := [4]bool{len(a1.slot) == 1, len(c1.slot) == 1, len(a2.slot) == 1, len(b1.slot) == 1}; got != step.want {
			t.Errorf("%s: served %v, want %v", step.does, got, step.want)
		}
	}
	p.release(nil, "a")
	if open, idle, waiting := p.counts(); open != idle || waiting != 0 || len(p.inUse) != 0 {
		t.Errorf("%d open, %d idle, %d waiting; by domain %v", open, idle, waiting, p.inUse)
	}
}

// A slot that is handed over at the moment at which its taker gives up goes back.
func TestPool_GiveUpWhenServed_LosesNoSlot(t *testing.T) {
	p := newPool(1, 1)
	p.open, p.inUse["a"] = 1, 1
	w := queue(p, "a")
	p.release(nil, "a")
	p.leave(w)
	if open, _, waiting := p.counts(); open != 0 || waiting != 0 || len(p.inUse) != 0 {
		t.Errorf("%d open, %d waiting; by domain %v", open, waiting, p.inUse)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.open = 1
	if _, failure := p.take(ctx, time.Now().Add(time.Hour), "b"); failure == nil || failure.Outcome != Unavailable || len(p.queue) != 0 {
		t.Errorf("%v, %d waiting", failure, len(p.queue))
	}
}

// Each connection that is refused beside others makes the limit one less, for a while. One
// that is alone is none too many.
func TestPool_Crowded_LowersTheLimit(t *testing.T) {
	p := newPool(8, 8)
	for i, step := range []struct {
		open    int
		crowded bool
		limit   int
	}{
		{1, false, 8}, {6, true, 5}, {6, true, 4}, {3, true, 2}, {2, true, 1}, {2, true, 1}, {1, false, 1},
	} {
		p.open = step.open
		if got := p.crowded(); got != step.crowded || p.limit() != step.limit {
			t.Errorf("step %d: crowded %v, limit %d; want %v, %d", i+1, got, p.limit(), step.crowded, step.limit)
		}
	}
	p.now = func() int64 { return 1000 }
	if p.limit() != 8 {
		t.Errorf("the limit stays %d", p.limit())
	}
}

// Only a connection that nobody took meanwhile is closed as idle.
func TestPool_Expire_TakenMeanwhile_Stays(t *testing.T) {
	p := newPool(2, 2)
	var quit []*conn
	p.quit = func(c *conn) { quit = append(quit, c) }
	older, younger := &conn{}, &conn{}
	p.open, p.inUse["a"] = 2, 2
	p.release(older, "a")
	p.release(younger, "a")
	if taken, _ := p.take(t.Context(), time.Now(), "a"); taken != younger {
		t.Fatal("the last put back is not the first taken")
	}
	p.expire(younger)
	p.expire(older)
	p.closers.Wait()
	if open, idle, _ := p.counts(); len(quit) != 1 || quit[0] != older || open != 1 || idle != 0 {
		t.Errorf("%d closed, %d open, %d idle", len(quit), open, idle)
	}
}

// A connection that carried as many mails as the relay delivers at once is closed.
func TestPool_Release_FullConnection_Closed(t *testing.T) {
	p := newPool(1, 1)
	p.quit = func(*conn) {}
	p.open, p.inUse["a"] = 1, 1
	p.release(&conn{most: eximMails, mails: eximMails}, "a")
	p.closers.Wait()
	if open, idle, _ := p.counts(); open != 0 || idle != 0 {
		t.Errorf("%d open, %d idle", open, idle)
	}
	if mostMails("220 mx.example ESMTP Exim 4.98 Mon") != eximMails || mostMails("220 mx.example ESMTP Postfix") != 0 {
		t.Error("the banner is read otherwise")
	}
}
