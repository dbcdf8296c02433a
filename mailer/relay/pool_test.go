package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// A connection is reused for as long as the relay takes it. RSET goes before MAIL only where
// the email before was refused.
func TestKeptConnection_NextMail_IsReused(t *testing.T) {
	s := fault.Run(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "refused.example"})
	r := newRelays(t, steady(), s.URL())
	for range 25 {
		mustSend(t, r, letter())
	}
	checkSend(t, t.Context(), r, to("refused.example"), relay.Rejected)
	mustSend(t, r, letter())
	closeRelays(t, r)
	want := "EHLO" + strings.Repeat(" MAIL RCPT DATA TEXT", 25) + " MAIL RCPT DATA RSET MAIL RCPT DATA TEXT QUIT"
	servertest.Eventually(t, "the relay heard "+want, func() bool { return heardBy(s) == want })
}

func TestKeptConnection_Idle_ClosedWithQUIT(t *testing.T) {
	s := fault.Run(t, fault.Script{})
	o := steady()
	o.Idle = 20 * time.Millisecond
	r := newRelays(t, o, s.URL())
	mustSend(t, r, letter())
	mustSend(t, r, letter()) // over the same, unless this machine is slow
	servertest.Eventually(t, "the idle connection is closed", func() bool {
		return strings.HasSuffix(heardBy(s), "TEXT QUIT") && s.Open() == 0 && r.Stats()[0].Open == 0
	})
	mustSend(t, r, letter())
}

// Whatever a kept connection dies of before the email was handed over, the email goes out on a
// fresh one, once, as where a relay takes so many emails over each. That is not held against it.
func TestKeptConnection_Dead_Replaced(t *testing.T) {
	t.Parallel()
	for step, kinds := range map[fault.Step][]fault.Kind{
		fault.RSET: {fault.HangUp, fault.Reset, fault.Leaving, fault.Silence, fault.Garbage, fault.Permanent, fault.Expelling},
		fault.MAIL: {fault.HangUp, fault.Reset, fault.Leaving, fault.Silence, fault.Temporary, fault.Expelling},
		fault.RCPT: {fault.HangUp, fault.Leaving},
		fault.DATA: {fault.HangUp, fault.Leaving, fault.Temporary},
	} {
		for i := range 2 * len(kinds) {
			kind, alone := kinds[i/2], i%2 == 1
			t.Run(fmt.Sprintf("%s/%s/NoPipelining=%t", step, kind, alone), func(t *testing.T) {
				t.Parallel()
				script := fault.Script{At: step, Kind: kind, Times: 1, NoPipelining: alone}
				s := fault.Run(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "refused.example", NoPipelining: alone})
				o := facing(script, ample)
				o.Breaker.Failures = 1
				r := newRelays(t, o, s.URL())
				mustSend(t, r, letter())
				if step == fault.RSET {
					checkSend(t, t.Context(), r, to("refused.example"), relay.Rejected)
				}
				s.Play(script)
				mustSend(t, r, letter())
				if conns, mails := len(s.Received()), len(s.Mails()); conns != 2 || mails != 2 {
					t.Errorf("%d connections and %d emails, want 2 and 2", conns, mails)
				}
			})
		}
	}
}

// However many send at once, each email goes out once, over no more connections than there may be.
// Microsoft 365 takes any number, but no email over those beyond three. That a relay takes no more
// is not held against it.
func TestPool_ManySenders_FewConnections(t *testing.T) {
	for name, c := range map[string]struct {
		script fault.Script
		most   int
	}{
		"by the settings":       {fault.Script{}, 8},
		"421 to the connection": {fault.Script{MostConns: 3}, 3},
		"432 to the email":      {fault.Script{MostSending: 3}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := fault.Run(t, c.script)
			var log bytes.Buffer
			o := steady()
			o.MaxConns, o.Breaker.Failures, o.Breaker.Cooldown = 8, 1, time.Hour
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r := newRelays(t, o, s.URL())
			const many = 100
			for _, err := range sendAtOnce(t, r, many) {
				checkOutcome(t, err, "")
			}
			taken, to := 0, map[string]bool{}
			for _, mail := range s.Mails() {
				if !mail.Refused {
					taken++
					to[mail.To] = true
				}
			}
			if stats := r.Stats()[0]; taken != many || len(to) != many || stats.CircuitOpen || stats.Open > c.most || log.String() != "" {
				t.Errorf("%d emails of %d, to %d; %+v; the log says\n%s", taken, many, len(to), stats, log.String())
			}
		})
	}
}

// Emails to one domain hold half the connections at most, whatever subdomains they name, and
// fill half the queue at most.
func TestPool_SilentDomain_HoldsHalf(t *testing.T) {
	s := fault.Run(t, fault.Script{At: fault.RCPT, Kind: fault.Silence, To: "slow.example"})
	o := steady()
	o.MaxConns, o.Waiting = 8, 16
	o.RCPT, o.Deadline = time.Hour, time.Hour
	r := newRelays(t, o, s.URL())
	ctx, cancel := context.WithCancel(t.Context())
	one, cancelOne := context.WithCancel(ctx)
	var group sync.WaitGroup
	begin := func(ctx context.Context, n, open, waiting int) {
		t.Helper()
		for n := range n {
			group.Go(func() {
				if _, err := send(ctx, r, to(fmt.Sprintf("sub%d.slow.example", n))); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		servertest.Eventually(t, fmt.Sprintf("%d are open and %d wait", open, waiting), func() bool {
			stats := r.Stats()[0]
			return stats.Open-stats.Idle == open && stats.Waiting == waiting
		})
	}
	begin(one, 1, 1, 0)
	begin(ctx, 11, 4, 8)
	cancelOne()
	begin(ctx, 0, 4, 7)
	begin(ctx, 1, 4, 8)
	checkSend(t, ctx, r, to("slow.example"), relay.Busy)
	for range 3 {
		mustSend(t, r, to("honest.example"))
	}
	if got := r.Stats()[0]; got.Open != 5 || got.Waiting != 8 {
		t.Errorf("%+v, want the domain's 4 connections and one more", got)
	}
	cancel()
	group.Wait()
	servertest.Eventually(t, "all is given back", func() bool {
		stats := r.Stats()[0]
		return stats.Open == stats.Idle && stats.Waiting == 0
	})
	mustSend(t, r, to("honest.example"))
}

// With no other connection to wait for, the email is unavailable.
func TestCrowded_432Alone_Unavailable(t *testing.T) {
	s := fault.Run(t, fault.Script{})
	r := newRelays(t, steady(), s.URL())
	holder := must.Get(net.Dial("tcp", s.Addr()))(t)
	defer holder.Close()
	servertest.Eventually(t, "another client is connected", func() bool { return s.Open() == 1 })
	s.Play(fault.Script{MostSending: 1})
	_, err := send(t.Context(), r, letter())
	checkFailure(t, err, relay.Unavailable, relay.StepFinalDot, &relay.Reply{Code: 432, Enhanced: "4.3.2", Message: "concurrent connections limit exceeded"})
	if n := len(s.Mails()); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// Soon after, more connections are asked for: it may have been trouble of that moment.
func TestCrowded_AfterCooldown_MoreAreAsked(t *testing.T) {
	s := fault.Run(t, fault.Script{At: fault.Dot, Kind: fault.Silence, MostConns: 1})
	var now atomic.Int64
	o := steady()
	o.Now, o.Breaker.Cooldown, o.FinalDot = now.Load, time.Second, time.Hour
	r := newRelays(t, o, s.URL())
	free := hold(t, r, s)
	var group sync.WaitGroup
	group.Go(func() { mustSend(t, r, to("waiting.example")) })
	servertest.Eventually(t, "one waits", func() bool { return r.Stats()[0].Waiting == 1 })
	s.Play(fault.Script{})
	now.Add(1000)
	mustSend(t, r, to("later.example"))
	free()
	group.Wait()
}

// If the relay takes none of several connections, that is held against it.
func TestCrowded_NoneTaken_CircuitOpens(t *testing.T) {
	for _, step := range []fault.Step{fault.Banner, fault.EHLO} {
		s := fault.Run(t, fault.Script{At: step, Kind: fault.Leaving})
		o := steady()
		o.MaxConns, o.Breaker.Failures, o.Breaker.Cooldown = 8, 5, time.Hour
		r := newRelays(t, o, s.URL())
		for _, err := range sendAtOnce(t, r, 12) {
			checkOutcome(t, err, relay.Unavailable)
		}
		if got, asked := r.Stats()[0], len(s.Received()); !got.CircuitOpen || got.Open != 0 || got.Waiting != 0 || asked > 8+5 {
			t.Errorf("%s: %+v, want it left alone; it was asked %d times", step, got, asked)
		}
	}
}

func TestClose_MailInProgress_Waits(t *testing.T) {
	s := fault.Run(t, fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: 5 * time.Millisecond})
	r := newRelays(t, steady(), s.URL())
	var group sync.WaitGroup
	group.Go(func() { checkSend(t, t.Context(), r, letter(), "") })
	servertest.Eventually(t, "the email is in progress", func() bool { return len(s.Mails()) == 1 })
	closeRelays(t, r)
	group.Wait()
	checkSend(t, t.Context(), r, letter(), relay.Unavailable)
}

func TestClose_AfterEveryFault_NoGoroutineLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, kind := range []fault.Kind{fault.None, fault.Silence, fault.Reset, fault.Temporary} {
		for _, step := range []fault.Step{fault.Banner, fault.RCPT, fault.Dot} {
			s := must.Get(fault.Start(fault.Script{At: step, Kind: kind}))(t)
			o := steady()
			o.Command, o.RCPT, o.FinalDot = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
			o.Pace = relay.Pace{PerSecond: 1000, Queue: 100}
			r := newRelays(t, o, s.URL())
			sendAtOnce(t, r, 8)
			closeRelays(t, r)
			s.Close()
		}
	}
	servertest.Eventually(t, fmt.Sprintf("no more than %d goroutines", before), func() bool {
		return runtime.NumGoroutine() <= before
	})
}
