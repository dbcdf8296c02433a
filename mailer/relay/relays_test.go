package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

func startSandbox(t *testing.T, o sandbox.Options) *sandbox.Server {
	t.Helper()
	s, err := sandbox.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustSend(t *testing.T, r *relay.Relays, m mail) relay.Receipt {
	t.Helper()
	receipt, err := send(t.Context(), r, m)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

func TestCommit_Text_ArrivesUnchanged(t *testing.T) {
	s := startSandbox(t, sandbox.Options{})
	r := newRelays(t, relay.Options{}, s.URL())
	for name, text := range map[string]string{
		"ordinary":           "Subject: a\r\n\r\nb\r\n",
		"dots":               "Subject: a\r\n\r\n.\r\n..\r\n...b\r\nc.\r\n.\r\n",
		"a dot at the start": ".x\r\n",
		"empty lines":        "\r\n\r\n\r\n",
		"longest line":       strings.Repeat("x", 998) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			m := letter()
			m.Bytes = []byte(text)
			receipt := mustSend(t, r, m)
			if receipt.Relay != s.Addr() || receipt.Reply.Code != 250 || receipt.Reply.Enhanced != "2.0.0" {
				t.Errorf("receipt = %+v", receipt)
			}
			kept := s.List()
			got := kept[len(kept)-1]
			if string(got.Raw) != text || got.From != m.From || len(got.To) != 1 || got.To[0] != m.To {
				t.Errorf("arrived: %q from %s to %v", got.Raw, got.From, got.To)
			}
		})
	}
}

// A text that is not fit for the wire is refused, and no octet of it leaves.
func TestCommit_Unsendable_Refused(t *testing.T) {
	for name, text := range map[string]string{
		"bare LF":            "a\nb\r\n",
		"bare LF first":      "\nb\r\n",
		"bare CR":            "a\rb\r\n",
		"CR CR LF":           "a\r\r\n",
		"CR at the end":      "a\r\nb\r",
		"no CRLF at the end": "a\r\nb",
		"smuggled end":       "a\r\n.\nMAIL FROM:<x@y>\r\n",
		"smuggled end by CR": "a\r.\r\r\n",
		"NUL":                "a\x00\r\n",
		"eight bits":         "f\xc3\xbcr\r\n",
		"not UTF-8":          "\xfc\r\n",
		"overlong line":      strings.Repeat("x", 999) + "\r\n",
		"nothing":            "",
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, fault.Script{})
			m := letter()
			m.Bytes = []byte(text)
			if _, err := send(t.Context(), newRelays(t, relay.Options{}, plain(s)), m); !errors.Is(err, relay.ErrUnsendable) {
				t.Errorf("err = %v, want ErrUnsendable", err)
			}
			if heard := heardBy(s); heard != "EHLO MAIL RCPT DATA" {
				t.Errorf("the relay heard %s", heard)
			}
		})
	}
	if _, err := newRelays(t, relay.Options{}, "smtp://127.0.0.1:9?tls=none").Begin(t.Context(), address.Address{}, parse(t, "a@b.example")); !errors.Is(err, relay.ErrUnsendable) {
		t.Errorf("without a sender: %v", err)
	}
}

// A connection is reused for as long as the relay takes it. RSET goes before MAIL only where
// the mail before was refused.
func TestKeptConnection_Reused(t *testing.T) {
	s := play(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "refused.example"})
	r := newRelays(t, steady(), plain(s))
	for range 25 {
		mustSend(t, r, letter())
	}
	_, err := send(t.Context(), r, to("refused.example"))
	checkOutcome(t, err, relay.Rejected)
	mustSend(t, r, letter())
	closeRelays(t, r)
	want := "EHLO" + strings.Repeat(" MAIL RCPT DATA TEXT", 25) + " MAIL RCPT DATA RSET MAIL RCPT DATA TEXT QUIT"
	if heard := heardBy(s); heard != want {
		t.Errorf("the relay heard\n%s, want\n%s", heard, want)
	}
}

func TestPool_IdleConnection_ClosedWithQUIT(t *testing.T) {
	s := play(t, fault.Script{})
	o := steady()
	o.IdleTimeout = 20 * time.Millisecond
	r := newRelays(t, o, plain(s))
	mustSend(t, r, letter())
	servertest.Eventually(t, "the idle connection is closed", func() bool { return s.Open() == 0 })
	if !bytes.HasSuffix(s.Received()[0], []byte("QUIT\r\n")) {
		t.Error("it did not take leave")
	}
	servertest.Eventually(t, "its place is free", func() bool { return r.Stats()[0].Open == 0 })
	mustSend(t, r, letter())
}

// TestKeptConnection_Dead_Replaced: whatever a kept connection dies of before the mail
// was handed over, the mail goes out on a fresh one, once.
func TestKeptConnection_Dead_Replaced(t *testing.T) {
	for _, c := range []struct {
		step  fault.Step
		kinds []fault.Kind
	}{
		{fault.RSET, []fault.Kind{fault.HangUp, fault.Reset, fault.Leaving, fault.Silence, fault.Garbage, fault.Permanent}},
		{fault.MAIL, []fault.Kind{fault.HangUp, fault.Reset, fault.Leaving, fault.Silence}},
		{fault.RCPT, []fault.Kind{fault.HangUp, fault.Leaving}},
		{fault.DATA, []fault.Kind{fault.HangUp, fault.Leaving}},
	} {
		for _, kind := range c.kinds {
			t.Run(string(c.step)+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				script := fault.Script{At: c.step, Kind: kind, Times: 1}
				s := play(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "refused.example"})
				r := newRelays(t, facingAmply(script), plain(s))
				mustSend(t, r, letter())
				if c.step == fault.RSET {
					_, err := send(t.Context(), r, to("refused.example"))
					checkOutcome(t, err, relay.Rejected)
				}
				s.Play(script)
				mustSend(t, r, letter())
				if conns, mails := len(s.Received()), len(s.Mails()); conns != 2 || mails != 2 {
					t.Errorf("%d connections and %d mails, want 2 and 2", conns, mails)
				}
			})
		}
	}
}

// TestKeptConnection_Spent_Replaced: a relay that takes one mail of each gets all of them, one
// after another, on as many.
func TestKeptConnection_Spent_Replaced(t *testing.T) {
	for _, script := range []fault.Script{
		{At: fault.MAIL}, {At: fault.MAIL, NoPipelining: true}, {At: fault.DATA}, {At: fault.DATA, NoPipelining: true},
	} {
		script.Kind = fault.Spent
		t.Run(fmt.Sprintf("%s/one by one=%v", script.At, script.NoPipelining), func(t *testing.T) {
			t.Parallel()
			s := play(t, script)
			o := steady()
			o.Breaker.Failures = 1
			r := newRelays(t, o, plain(s))
			const many = 5
			for range many {
				mustSend(t, r, letter())
			}
			if conns, mails := len(s.Received()), len(s.Mails()); conns != many || mails != many {
				t.Errorf("%d connections and %d mails, want %d of both", conns, mails, many)
			}
		})
	}
}

// TestCircuit_OpensWhileWaiting_NotAsked: who waited for a connection to a relay that
// was given up meanwhile does not ask it.
func TestCircuit_OpensWhileWaiting_NotAsked(t *testing.T) {
	s := play(t, fault.Script{At: fault.Banner, Kind: fault.Silence})
	o := steady()
	o.MaxConns = 1
	o.Breaker = relay.Breaker{Failures: 1, Cooldown: time.Hour}
	var r *relay.Relays
	waiting := -1
	o.Hooks.Circuit = func(string, bool) { waiting = r.Stats()[0].Waiting }
	r = newRelays(t, o, plain(s))
	var group sync.WaitGroup
	try := func() {
		_, err := send(t.Context(), r, letter())
		checkOutcome(t, err, relay.Unavailable)
	}
	group.Go(try)
	servertest.Eventually(t, "one is connected", func() bool { return s.Open() == 1 })
	group.Go(try)
	servertest.Eventually(t, "one waits", func() bool { return r.Stats()[0].Waiting == 1 })
	s.Cut()
	group.Wait()
	if got := len(s.Received()); got != 1 {
		t.Errorf("the relay was asked %d times, want 1", got)
	}
	if waiting != 1 {
		t.Errorf("%d waited when the breaker opened, want 1: the next was called before", waiting)
	}
}

func TestPool_ManySenders_NeverMoreThanMax(t *testing.T) {
	s := play(t, fault.Script{})
	r := newRelays(t, relay.Options{MaxConns: 4}, plain(s))
	const senders, each = 64, 10
	var group sync.WaitGroup
	for n := range senders {
		group.Go(func() {
			for i := range each {
				m := letter()
				m.To = fmt.Sprintf("user-%d@acme%d.example", i, n)
				if _, err := send(t.Context(), r, m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := s.MostOpen(); got > 4 || got < 2 {
		t.Errorf("at most %d connections at once, want 2 to 4", got)
	}
	seen := map[string]int{}
	for _, m := range s.Mails() {
		seen[m.To]++
	}
	if len(seen) != senders*each {
		t.Errorf("%d recipients of %d got a mail", len(seen), senders*each)
	}
	for to, n := range seen {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
}

// TestPool_Wait_Bounded: the wait is bounded in length, in number, and by
// the caller.
func TestPool_Wait_Bounded(t *testing.T) {
	s := play(t, fault.Script{At: fault.Dot, Kind: fault.Silence})
	o := steady()
	o.MaxConns, o.MaxWaiting = 1, 1
	o.FinalDotTimeout = time.Hour
	o.Deadline = time.Hour
	r := newRelays(t, o, plain(s))
	holder, release := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { send(holder, r, letter()) })
	servertest.Eventually(t, "the only connection is taken", func() bool { return len(s.Mails()) == 1 })

	short, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := send(short, r, letter()); !isBusy(err) {
		t.Errorf("after the deadline: %v, want busy", err)
	}
	waiter, leave := context.WithCancel(t.Context())
	group.Go(func() {
		_, err := send(waiter, r, letter())
		checkOutcome(t, err, relay.Unavailable)
	})
	servertest.Eventually(t, "one waits", func() bool { return r.Stats()[0].Waiting == 1 })
	_, err := send(t.Context(), r, letter())
	if busy, ok := errors.AsType[*relay.Error](err); !ok || busy.RetryAfter <= 0 {
		t.Errorf("with the queue full: %v, want busy and when to come again", err)
	}
	leave()
	servertest.Eventually(t, "nobody waits", func() bool { return r.Stats()[0].Waiting == 0 })
	release()
	group.Wait()
	s.Play(fault.Script{})
	mustSend(t, r, letter())
}

// slowBeside makes two relays, of which the first has its only connection taken by a mail until
// free is called.
func slowBeside(t *testing.T, second fault.Script) (r *relay.Relays, slow, other *fault.Server, free func()) {
	t.Helper()
	slow, other = play(t, fault.Script{At: fault.Dot, Kind: fault.Silence}), play(t, second)
	o := steady()
	o.MaxConns = 1
	o.FinalDotTimeout, o.Deadline = time.Hour, time.Hour
	r = newRelays(t, o, plain(slow), plain(other))
	holder, release := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { send(holder, r, letter()) })
	servertest.Eventually(t, "the first relay's only connection is taken", func() bool { return len(slow.Mails()) == 1 })
	return r, slow, other, func() {
		release()
		group.Wait()
	}
}

// TestRelays_FirstBusy_SecondTakesIt: a mail does not stand in the line of a relay that is slow
// until its time is up, beside another that has nothing to do.
func TestRelays_FirstBusy_SecondTakesIt(t *testing.T) {
	t.Parallel()
	r, _, second, free := slowBeside(t, fault.Script{})
	defer free()
	short, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	if receipt, err := send(short, r, letter()); err != nil || receipt.Relay != second.Addr() {
		t.Errorf("%+v, %v; want that the second took it", receipt, err)
	}
}

// TestRelays_SecondDown_BackToTheFirst: mails that left the line of a relay that is slow, for another that
// turned out to be no help, wait for the slow one after all.
func TestRelays_SecondDown_BackToTheFirst(t *testing.T) {
	t.Parallel()
	r, first, second, free := slowBeside(t, fault.Script{At: fault.Banner, Kind: fault.HangUp})
	first.Play(fault.Script{})
	short, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	const many = 4
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			if receipt, err := send(short, r, letter()); err != nil || receipt.Relay != first.Addr() {
				t.Errorf("%+v, %v; want that the first took it", receipt, err)
			}
		})
	}
	servertest.Eventually(t, "all have asked the second, and wait for the first again", func() bool {
		return len(second.Received()) == many && r.Stats()[0].Waiting == many || short.Err() != nil
	})
	free()
	group.Wait()
	if got := len(second.Received()); got != many {
		t.Errorf("the second was asked %d times, want %d", got, many)
	}
}

// TestRelays_AllCircuitsOpen_RefusedAtOnce: a mail that nobody would be asked to take does not wait for its turn.
func TestRelays_AllCircuitsOpen_RefusedAtOnce(t *testing.T) {
	s := play(t, fault.Script{At: fault.Banner, Kind: fault.HangUp})
	o := steady()
	o.Now = func() int64 { return 0 }
	o.Pace = relay.Pace{PerSecond: 1} // and the second mail comes too soon
	o.Breaker = relay.Breaker{Failures: 1, Cooldown: 7 * time.Second}
	r := newRelays(t, o, plain(s))
	_, err := send(t.Context(), r, letter())
	checkOutcome(t, err, relay.Unavailable)
	_, err = send(t.Context(), r, letter())
	checkOutcome(t, err, relay.Unavailable)
	if failure, _ := errors.AsType[*relay.Error](err); failure.RetryAfter != 7*time.Second {
		t.Errorf("retry after %v, want 7s", failure.RetryAfter)
	}
	if got := len(s.Received()); got != 1 {
		t.Errorf("asked %d times, want 1", got)
	}
}

func TestRelays_AllSilent_DeadlineHolds(t *testing.T) {
	var urls []string
	for range 3 {
		urls = append(urls, plain(play(t, fault.Script{At: fault.Banner, Kind: fault.Silence})))
	}
	o := steady()
	o.CommandTimeout, o.Deadline = time.Hour, patience
	r := newRelays(t, o, urls...)
	began := time.Now()
	_, err := send(t.Context(), r, letter())
	checkOutcome(t, err, relay.Unavailable)
	if took := time.Since(began); took > hanging {
		t.Errorf("took %v", took)
	}
}

func TestClose_MailUnderWay_Waits(t *testing.T) {
	s := play(t, fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: 5 * time.Millisecond})
	o := steady()
	o.FinalDotTimeout = hanging
	r := newRelays(t, o, plain(s))
	sent := make(chan error, 1)
	go func() {
		_, err := send(context.Background(), r, letter())
		sent <- err
	}()
	servertest.Eventually(t, "the mail is under way", func() bool { return len(s.Mails()) == 1 })
	closeRelays(t, r)
	if err := <-sent; err != nil {
		t.Errorf("the mail under way: %v", err)
	}
	_, err := send(t.Context(), r, letter())
	checkOutcome(t, err, relay.Unavailable)
	if !errors.Is(err, relay.ErrClosed) || err.Error() != "mail unavailable: "+relay.ErrClosed.Error() {
		t.Errorf("after Close: %v", err)
	}
}

func TestClose_ContextEnds_CutsOff(t *testing.T) {
	for _, c := range []struct {
		step fault.Step
		want relay.Outcome
	}{{fault.Banner, relay.Unavailable}, {fault.MAIL, relay.Unavailable}, {fault.Dot, relay.Unknown}} {
		t.Run(string(c.step), func(t *testing.T) {
			s := play(t, fault.Script{At: c.step, Kind: fault.Silence})
			o := steady()
			o.CommandTimeout, o.FinalDotTimeout, o.Deadline = time.Hour, time.Hour, time.Hour
			r := newRelays(t, o, plain(s))
			sent := make(chan error, 1)
			go func() {
				_, err := send(context.Background(), r, letter())
				sent <- err
			}()
			servertest.Eventually(t, "it hangs", func() bool {
				heard := s.Received()
				return len(heard) == 1 && (c.step == fault.Banner || len(heard[0]) > 20) &&
					(c.step != fault.Dot || len(s.Mails()) == 1)
			})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.Close(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Close: %v", err)
			}
			checkOutcome(t, <-sent, c.want)
			servertest.Eventually(t, "no connection is left", func() bool { return s.Open() == 0 })
		})
	}
}

// TestClose_NoGoroutineLeft counts goroutines after sends that went every which way.
func TestClose_NoGoroutineLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, kind := range []fault.Kind{fault.None, fault.Silence, fault.Reset, fault.Temporary} {
		for _, step := range []fault.Step{fault.Banner, fault.RCPT, fault.Dot} {
			s, err := fault.Start(fault.Script{At: step, Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			o := steady()
			o.CommandTimeout, o.RCPTTimeout = 20*time.Millisecond, 20*time.Millisecond
			o.FinalDotTimeout = 20 * time.Millisecond
			o.Pace = relay.Pace{PerSecond: 1000, Queue: 100}
			r := newRelays(t, o, plain(s))
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() { send(t.Context(), r, letter()) })
			}
			group.Wait()
			closeRelays(t, r)
			s.Close()
		}
	}
	servertest.Eventually(t, fmt.Sprintf("no more than %d goroutines", before), func() bool {
		return runtime.NumGoroutine() <= before
	})
}

// TestPace_QueueFull_BusyAtOnce: the pace stands in front of all relays, and a full queue is
// told at once.
func TestPace_QueueFull_BusyAtOnce(t *testing.T) {
	s := play(t, fault.Script{})
	var paced atomic.Int32
	results := make(chan string, 8)
	o := steady()
	o.Pace = relay.Pace{PerSecond: 0.01, Queue: 1}
	o.Hooks.Paced = func(time.Duration) { paced.Add(1) }
	o.Hooks.Tried = func(_, result string, _ time.Duration) { results <- result }
	o.Deadline = time.Hour
	r := newRelays(t, o, plain(s))
	mustSend(t, r, letter())
	waiter, leave := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		_, err := send(waiter, r, letter())
		for isBusy(err) { // who looks below whether it is full was in its place
			_, err = send(waiter, r, letter())
		}
		checkOutcome(t, err, relay.Unavailable)
	})
	var busy *relay.Error
	servertest.Eventually(t, "the queue is full", func() bool {
		short, cancel := context.WithCancel(t.Context())
		cancel() // should it find room, it leaves it at once
		_, err := send(short, r, letter())
		return isBusy(err) && errors.As(err, &busy)
	})
	if busy.RetryAfter < time.Minute || busy.RetryAfter > 100*time.Second {
		t.Errorf("come again after %v, want what is left of 100s", busy.RetryAfter)
	}
	impatient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := send(impatient, r, letter()); !isBusy(err) {
		t.Errorf("a minute's patience for a wait of more: %v", err)
	}
	leave()
	group.Wait()
	if got := len(s.Mails()); got != 1 || paced.Load() != 1 || len(results) != 1 || <-results != "sent" {
		t.Errorf("%d mails, %d paced", got, paced.Load())
	}
}

// TestHello_NoEHLO_SaysHELO: one that knows nothing but SMTP is greeted so, and told nothing that
// it does not know. Where TLS is wanted there is no mail.
func TestHello_NoEHLO_SaysHELO(t *testing.T) {
	unknown := fault.Script{At: fault.EHLO, Kind: fault.Echo} // 500
	s := play(t, unknown)
	mustSend(t, newRelays(t, steady(), plain(s)), letter())
	want := "EHLO localhost\r\nHELO localhost\r\nMAIL FROM:<no-reply@acme.example>\r\nRCPT TO:<somebody@secret.example>\r\nDATA\r\n" + stuffed + ".\r\n"
	if heard := string(s.Received()[0]); heard != want {
		t.Errorf("the relay heard\n%q, want\n%q", heard, want)
	}
	tr := newTrust(t)
	unknown.TLS = tr.good()
	s = play(t, unknown)
	_, err := send(t.Context(), newRelays(t, steady(), tr.address("smtp", "acme", s)), letter())
	checkFailure(t, err, relay.Unavailable, relay.StepSTARTTLS, nil)
	if heard := string(s.Received()[0]); strings.Contains(heard, "MAIL") || strings.Contains(heard, "AUTH") {
		t.Errorf("without TLS the relay heard\n%q", heard)
	}
}
