package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// patience is a timeout that is meant to run out. Where none is, it is
// hanging, so that a busy machine changes no outcome.
const patience = 250 * time.Millisecond

// ample is one that runs out in the trouble alone: what must go well, a mail or a step
// before the trouble, goes under it, too.
const ample = 800 * time.Millisecond

// hanging is when a send that should have ended is declared stuck.
const hanging = 20 * time.Second

func letter() mail {
	return mail{
		From: "no-reply@acme.example",
		To:   "somebody@secret.example",
		Bytes: []byte("From: Acme <no-reply@acme.example>\r\nTo: somebody@secret.example\r\n" +
			"Subject: code\r\n\r\n.123456 is your code\r\n.\r\nbye\r\n"),
	}
}

// stuffed is letter's text as it must arrive.
const stuffed = "From: Acme <no-reply@acme.example>\r\nTo: somebody@secret.example\r\n" +
	"Subject: code\r\n\r\n..123456 is your code\r\n..\r\nbye\r\n"

// steady are settings under which neither time nor the breaker decides.
func steady() relay.Options {
	return relay.Options{
		MaxConns:        4,
		ConnectTimeout:  hanging,
		CommandTimeout:  hanging,
		RCPTTimeout:     hanging,
		FinalDotTimeout: hanging,
		Deadline:        2 * hanging,
		Breaker:         relay.Breaker{Failures: 1000},
	}
}

// facing is steady, but for the one timeout that this fault must run into.
func facing(script fault.Script) relay.Options {
	o := steady()
	switch {
	case script.Kind != fault.Silence && script.Kind != fault.Drip:
	case script.At == fault.Dot || script.At == fault.Content:
		o.FinalDotTimeout = patience
	case script.At == fault.Handshake:
		o.ConnectTimeout = patience
	case script.At == fault.RCPT:
		o.RCPTTimeout = patience
	default:
		o.CommandTimeout = patience
	}
	return o
}

// facingAmply is facing where something must go well under that timeout.
func facingAmply(script fault.Script) relay.Options {
	o := facing(script)
	for _, timeout := range []*time.Duration{&o.CommandTimeout, &o.RCPTTimeout, &o.FinalDotTimeout} {
		if *timeout == patience {
			*timeout = ample
		}
	}
	return o
}

func newRelays(t *testing.T, o relay.Options, urls ...string) *relay.Relays {
	t.Helper()
	var parsed []relay.URL
	for _, text := range urls {
		u, err := relay.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, u)
	}
	r, err := relay.New(parsed, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeRelays(t, r) })
	return r
}

func closeRelays(t *testing.T, r *relay.Relays) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hanging)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func plain(s interface{ Addr() string }) string { return "smtp://" + s.Addr() + "?tls=none" }

func play(t *testing.T, script fault.Script) *fault.Server {
	t.Helper()
	s, err := fault.Start(script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestSend_EveryFaultAtEveryStep is the table: what a sender learns, and what can
// have been delivered, when a relay does this at that step.
func TestSend_EveryFaultAtEveryStep(t *testing.T) {
	type outcomes map[fault.Kind]relay.Outcome
	const (
		sent        = relay.Outcome(0)
		unavailable = relay.Unavailable
		rejected    = relay.Rejected
		unknown     = relay.Unknown
	)
	setup := outcomes{
		fault.Silence: unavailable, fault.Temporary: unavailable, fault.Permanent: unavailable, fault.Barred: unavailable,
		fault.Leaving: unavailable, fault.HangUp: unavailable, fault.Reset: unavailable,
		fault.Drip: unavailable, fault.Garbage: unavailable, fault.Endless: unavailable,
		fault.LongLine: unavailable, fault.WrongCode: unavailable,
	}
	command := outcomes{
		fault.Silence: unavailable, fault.Temporary: unavailable, fault.Permanent: rejected, fault.Barred: unavailable,
		fault.Leaving: unavailable, fault.HangUp: unavailable, fault.Reset: unavailable,
		fault.Drip: unavailable, fault.Garbage: unavailable, fault.Endless: unavailable,
		fault.LongLine: unavailable, fault.WrongCode: unavailable, fault.Chatter: unavailable,
	}
	sender := maps.Clone(command)
	sender[fault.Permanent] = unavailable // it is the sender's domain that is refused, or we are
	table := []struct {
		step  fault.Step
		kinds outcomes
	}{
		{fault.Banner, setup},
		{fault.EHLO, setup},
		{fault.MAIL, sender},
		{fault.RCPT, command},
		{fault.DATA, command},
		{fault.Content, outcomes{fault.Reset: unknown, fault.HangUp: unknown}},
		{fault.Dot, outcomes{
			fault.Silence: unknown, fault.Temporary: unavailable, fault.Permanent: rejected, fault.Barred: unavailable,
			fault.Leaving: unavailable, fault.HangUp: unknown, fault.Reset: unknown,
			fault.Drip: unknown, fault.Garbage: unknown, fault.Endless: unknown,
			fault.LongLine: unknown, fault.WrongCode: unknown, fault.Chatter: sent,
		}},
	}
	for _, row := range table {
		for kind, want := range row.kinds {
			for _, alone := range []bool{false, true} {
				script := fault.Script{At: row.step, Kind: kind, NoPipelining: alone}
				t.Run(fmt.Sprintf("%s/%s/one by one=%v", row.step, kind, alone), func(t *testing.T) {
					t.Parallel()
					suffer(t, script, want)
				})
			}
		}
	}
}

// suffer sends one mail to a relay with one fault and checks all that must
// hold whatever the fault is.
func suffer(t *testing.T, script fault.Script, want relay.Outcome) {
	s := play(t, script)
	var log lockedBuffer
	o := facing(script)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := newRelays(t, o, plain(s))
	began := time.Now()
	_, err := send(t.Context(), r, letter())
	if took := time.Since(began); took > hanging {
		t.Errorf("took %v", took)
	}
	checkOutcome(t, err, want)
	mayHaveArrived := want == 0 || script.At == fault.Dot
	if got := len(s.Mails()); got > 1 || (got == 1 && !mayHaveArrived) {
		t.Errorf("%d mails arrived whole", got)
	}
	for _, received := range s.Received() {
		checkWire(t, received, mayHaveArrived || script.At == fault.Content)
	}
	for _, text := range []string{log.String(), fmt.Sprint(err)} {
		if strings.Contains(text, "secret.example") {
			t.Errorf("an address is shown: %s", text)
		}
	}
	closeRelays(t, r)
	servertest.Eventually(t, "no connection is left", func() bool { return s.Open() == 0 })
}

func checkOutcome(t *testing.T, err error, want relay.Outcome) {
	t.Helper()
	if want == 0 {
		if err != nil {
			t.Errorf("err = %v, want none", err)
		}
		return
	}
	failure, ok := errors.AsType[*relay.Error](err)
	if !ok || failure.Outcome != want {
		t.Errorf("err = %v, want %v", err, want)
	}
	if ok && want == relay.Rejected && (failure.Reply.Code != 554 || failure.Reply.Enhanced != "5.1.1" ||
		!strings.HasPrefix(failure.Reply.Message, "never")) {
		t.Errorf("reply = %+v", *failure.Reply)
	}
}

// checkWire holds the conversation to its promises: one recipient, no octet of
// the mail unless it was asked for.
func checkWire(t *testing.T, received []byte, textAllowed bool) {
	t.Helper()
	if n := bytes.Count(received, []byte("RCPT TO:")); n > 1 {
		t.Errorf("%d recipients in one transaction", n)
	}
	if !textAllowed && bytes.Contains(received, []byte("Subject:")) {
		t.Errorf("the mail's text went out:\n%s", received)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestWire_RefusedRecipient says to the octet what a relay hears when it
// refuses the recipient.
func TestWire_RefusedRecipient(t *testing.T) {
	const hello = "EHLO localhost\r\n"
	const mail = "MAIL FROM:<no-reply@acme.example>\r\n"
	const rcpt = "RCPT TO:<somebody@secret.example>\r\n"
	for name, c := range map[string]struct {
		script fault.Script
		want   string
	}{
		"one by one":               {fault.Script{NoPipelining: true}, hello + mail + rcpt + "QUIT\r\n"},
		"in a group":               {fault.Script{}, hello + mail + rcpt + "DATA\r\n" + "QUIT\r\n"},
		"opened all the same":      {fault.Script{OpenForRefused: true}, hello + mail + rcpt + "DATA\r\n"},
		"in a group, for a moment": {fault.Script{Kind: fault.Temporary}, hello + mail + rcpt + "DATA\r\n" + "QUIT\r\n"},
		"one by one, as ours":      {fault.Script{Kind: fault.Barred, NoPipelining: true}, hello + mail + rcpt + "QUIT\r\n"},
		"in a group, as ours":      {fault.Script{Kind: fault.Barred}, hello + mail + rcpt + "DATA\r\n" + "QUIT\r\n"},
		"as ours, opened":          {fault.Script{Kind: fault.Barred, OpenForRefused: true}, hello + mail + rcpt + "DATA\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.script.At = fault.RCPT
			want := relay.Unavailable
			if c.script.Kind == fault.None {
				c.script.Kind, want = fault.Permanent, relay.Rejected
			}
			s := play(t, c.script)
			r := newRelays(t, steady(), plain(s))
			_, err := send(t.Context(), r, letter())
			checkOutcome(t, err, want)
			closeRelays(t, r)
			servertest.Eventually(t, "no connection is left", func() bool { return s.Open() == 0 })
			if got := string(s.Received()[0]); got != c.want {
				t.Errorf("the relay heard\n%q, want\n%q", got, c.want)
			}
			if len(s.Mails()) != 0 {
				t.Error("a mail arrived")
			}
		})
	}
}

// TestCommit_TextStuckHalfway_Unavailable: the relay stops reading in the middle of a mail too
// great for any buffer, so its last octet certainly never left.
func TestCommit_TextStuckHalfway_Unavailable(t *testing.T) {
	script := fault.Script{At: fault.Content, Kind: fault.Silence, DripEvery: 100 * time.Millisecond}
	s := play(t, script)
	r := newRelays(t, facing(script), plain(s))
	great := letter()
	great.Bytes = append(great.Bytes, bytes.Repeat([]byte("0123456789\r\n"), 2<<20)...)
	_, err := send(t.Context(), r, great)
	checkOutcome(t, err, relay.Unavailable)
	if failure, _ := errors.AsType[*relay.Error](err); failure.Step != relay.StepContent {
		t.Errorf("failed at %s", failure.Step)
	}
	if len(s.Mails()) != 0 {
		t.Error("a mail arrived")
	}
}

// TestSend_Cancelled_OutcomeByStep: a caller who goes away before the final dot gets the mail
// back; afterwards nobody knows.
func TestSend_Cancelled_OutcomeByStep(t *testing.T) {
	for _, c := range []struct {
		step    fault.Step
		arrived string // in what the relay has heard when the caller goes
		want    relay.Outcome
	}{
		{fault.Banner, "", relay.Unavailable},
		{fault.MAIL, "MAIL FROM", relay.Unavailable},
		{fault.RCPT, "RCPT TO", relay.Unavailable},
		{fault.DATA, "DATA", relay.Unavailable},
		{fault.Dot, "\r\n.\r\n", relay.Unknown},
	} {
		t.Run(string(c.step), func(t *testing.T) {
			t.Parallel()
			s := play(t, fault.Script{At: c.step, Kind: fault.Silence})
			o := steady()
			o.CommandTimeout, o.FinalDotTimeout = time.Hour, time.Hour
			o.Deadline = time.Hour
			r := newRelays(t, o, plain(s))
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := send(ctx, r, letter())
				failed <- err
			}()
			servertest.Eventually(t, "the relay heard "+c.arrived, func() bool {
				heard := s.Received()
				return len(heard) == 1 && bytes.Contains(heard[0], []byte(c.arrived))
			})
			cancel()
			err := <-failed
			checkOutcome(t, err, c.want)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v, want it to say that the caller cancelled", err)
			}
		})
	}
}
