package mailer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
)

func noConnections(most, perDomain int) *connections {
	return &connections{
		max: most, mostPerDomain: perDomain, now: func() int64 { return 0 }, idleMS: time.Hour.Milliseconds(), longMS: 1000,
		mostStrangers: most, line: newLine(1024, 512), inUse: map[string]int{}, known: newAcquaintances(100),
	}
}

// stand puts a send for this domain in the line, as take does.
func stand(k *connections, domain string) *waiter {
	return k.line.join(claim{domain: domain}, k.now(), k.turned)
}

// TestWhoIsServed: in order of arrival, but for those whose domain has its
// share; they lose no turn when it has room again.
func TestWhoIsServed(t *testing.T) {
	k := noConnections(2, 1)
	p := patience{ctx: t.Context(), until: time.Now().Add(time.Hour)}
	for _, domain := range []string{"a", "b"} {
		if _, _, err := k.take(p, claim{domain: domain}); err != nil {
			t.Fatal(err)
		}
	}
	a1, c1, a2, b1 := stand(k, "a"), stand(k, "c"), stand(k, "a"), stand(k, "b")
	served := func(w *waiter) bool { return len(w.called) == 1 }
	pass := func(domain string, c *smtpConn) {
		k.pass(share{claim: claim{domain: domain}, stranger: true}, c)
	}
	for _, step := range []struct {
		does string
		do   func()
		want [4]bool
	}{
		{"b's mail is done", func() { pass("b", &smtpConn{}) }, [4]bool{false, true, false, false}},
		{"c's mail is done", func() { pass("c", &smtpConn{}) }, [4]bool{false, true, false, true}},
		{"a's mail is done", func() { pass("a", nil) }, [4]bool{true, true, false, true}},
		{"b's second is done", func() { pass("b", &smtpConn{}) }, [4]bool{true, true, false, true}},
		{"a's second breaks off", func() { pass("a", nil) }, [4]bool{true, true, true, true}},
	} {
		step.do()
		if got := [4]bool{served(a1), served(c1), served(a2), served(b1)}; got != step.want {
			t.Errorf("%s: served %v, want %v", step.does, got, step.want)
		}
	}
	pass("a", nil)
	if open, idle, waiting := k.counts(); open != idle || waiting != 0 || len(k.inUse)+len(k.line.forDomain)+k.strangers != 0 {
		t.Errorf("%d open, %d idle, %d waiting; by domain %v and %v; %d strangers",
			open, idle, waiting, k.inUse, k.line.forDomain, k.strangers)
	}
	k.reaper.Stop()
}

// TestTheLastOfALongLineIsFirst: the order turns when the first in line has
// waited for a second, and back when the line is short again.
func TestTheLastOfALongLineIsFirst(t *testing.T) {
	now := int64(5000)
	k := noConnections(1, 1)
	k.now = func() int64 { return now }
	k.open = 1
	join := func(domain string, at int64) *waiter {
		return k.line.join(claim{domain: domain}, at, k.turned)
	}
	crowd := []*waiter{join("a", 5000), join("b", 5000), join("c", 5000), join("d", 5100)}
	served := func() (who string) {
		for _, w := range crowd {
			if len(w.called) == 1 {
				<-w.called
				k.inUse, k.strangers = map[string]int{}, 0
				who += w.domain
			}
		}
		return who
	}
	for _, step := range []struct {
		at    int64
		joins string
		want  string
	}{
		{at: 5999, want: "a"},
		{at: 6000, want: "d"},
		{at: 6000, joins: "e", want: "e"},
		{at: 6000, want: "c"},
		{at: 6000, joins: "f", want: "f"},
		{at: 6100, want: "b"},
		{at: 6100, want: ""},
	} {
		now = step.at
		if step.joins != "" {
			crowd = append(crowd, join(step.joins, now))
		}
		k.drop()
		if got := served(); got != step.want {
			t.Errorf("at %d: served %q, want %q", step.at, got, step.want)
		}
	}
}

// TestNoPlaceIsLost: a place that is handed over at the very moment at which
// its taker gives up goes back. Which of the two wins is chance.
func TestNoPlaceIsLost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gaveUp := 0
	for range 100 {
		k := noConnections(1, 1)
		k.open = 1
		w := stand(k, "a.example")
		k.drop() // hands the place to who waits
		if err := k.await(patience{ctx: ctx, until: time.Now().Add(time.Hour)}, w); err == nil {
			k.pass(w.share, nil)
		} else {
			gaveUp++
		}
		if open, _, waiting := k.counts(); open != 0 || waiting != 0 || len(k.inUse)+len(k.line.forDomain) != 0 {
			t.Fatalf("%d places taken and %d waiting, want none; by domain %v and %v", open, waiting, k.inUse, k.line.forDomain)
		}
	}
	if gaveUp == 0 || gaveUp == 100 {
		t.Errorf("gave up %d times of 100: chance had no part in it", gaveUp)
	}
}

// TestHowManyARelayTakes: each that is sent away beside others makes them one fewer, for a
// second. One that is alone is none too many.
func TestHowManyARelayTakes(t *testing.T) {
	now := int64(0)
	k := noConnections(8, 8)
	k.now, k.fullMS = func() int64 { return now }, 1000
	for i, step := range []struct {
		at      int64
		open    int
		crowded bool
		most    int
	}{
		{0, 1, false, 8}, {0, 6, true, 5}, {0, 6, true, 4}, {999, 3, true, 2}, {999, 2, true, 1}, {999, 2, true, 1},
		{999, 1, false, 1}, {1998, 0, false, 1}, {1999, 0, false, 8}, {1999, 8, true, 7},
	} {
		now, k.open = step.at, step.open
		if got := k.crowded(); got != step.crowded || k.most() != step.most {
			t.Errorf("step %d: crowded %v, %d at most; want %v, %d", i+1, got, k.most(), step.crowded, step.most)
		}
	}
}

// TestOneTooManyTooLate: a mail for which there is no connection, and no time to wait for
// another's, has ended here, and the log says so.
func TestOneTooManyTooLate(t *testing.T) {
	var log bytes.Buffer
	o, err := Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := fault.Start(fault.Script{At: fault.Banner, Kind: fault.Leaving})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	url, err := ParseRelayURL("smtp://" + s.Addr() + "?tls=none")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t.Context(), url, o)
	r.conns.open = 1 // there is another
	l, err := prepare(&Message{From: "a@acme.example", To: "b@acme.example", Bytes: []byte("Subject: x\r\n\r\nx\r\n")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.free()
	p := patience{ctx: t.Context(), until: time.Now().Add(time.Minute), least: time.Hour}
	if _, err := r.send(p, l); !errors.Is(err, errCrowded) {
		t.Errorf("err = %v, want that it takes no more", err)
	}
	if text := log.String(); strings.Count(text, "mail not accepted") != 1 {
		t.Errorf("the log says\n%s", text)
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

// TestTheYoungerLeavesLater: whoever is not idle for long enough yet stays, and is looked at
// again.
func TestTheYoungerLeavesLater(t *testing.T) {
	k := noConnections(2, 2)
	now := int64(0)
	var left []*smtpConn
	k.now, k.retire = func() int64 { return now }, func(c *smtpConn) { left = append(left, c) }
	older, younger := &smtpConn{}, &smtpConn{}
	k.put(older)
	now = k.idleMS / 2 // so far apart that no timer runs out meanwhile
	k.put(younger)
	if !k.reaper.Stop() {
		t.Error("nobody looks at what is idle")
	}
	now = k.idleMS
	k.reap()
	if len(left) != 1 || left[0] != older || len(k.idle) != 1 || !k.reaper.Stop() {
		t.Errorf("%d have left, %d are idle", len(left), len(k.idle))
	}
}

// TestHowARecipientIsAnsweredFor: a connection that breaks tells nothing of the recipient.
func TestHowARecipientIsAnsweredFor(t *testing.T) {
	c := &smtpConn{opener: &opener{options: Options{RCPTTimeout: time.Hour}}}
	now := time.Now()
	for _, tt := range []struct {
		name    string
		sent    time.Time
		failure *SendError
		want    answering
	}{
		{"taken", now, nil, prompt},
		{"refused", now, &SendError{Reply: &Reply{Code: 550}}, prompt},
		{"taken late", now.Add(-time.Hour), nil, slow},
		{"not answered", now, &SendError{Err: errTimeout}, slow},
		{"broken off", now, &SendError{Err: errHungUp}, notAsked},
	} {
		if got := c.answering(tt.sent, tt.failure); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
