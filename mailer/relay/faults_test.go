package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// end is what must come of an email that meets a fault: the outcome, and whether it is held
// against the relay.
type end struct {
	outcome relay.Outcome
	opens   bool // the circuit breaker, at the first failure
}

var (
	down     = end{relay.Unavailable, true}
	policy   = end{relay.Unavailable, false} // to one email, or about us
	deferred = end{relay.Deferred, false}
	rejected = end{relay.Rejected, false}
	unknown  = end{relay.Unknown, true}
)

// ends is the table of every fault at every step.
var ends = map[fault.Step]map[fault.Kind]end{
	fault.Banner:  atSetup,
	fault.EHLO:    atSetup,
	fault.MAIL:    {fault.Chatter: policy}, // and atSetup: a 5xx is about the sender's domain, or us
	fault.RCPT:    atRCPT,
	fault.DATA:    {fault.Temporary: policy, fault.Permanent: rejected, fault.Barred: policy, fault.WrongCode: policy, fault.Chatter: down}, // and atSetup
	fault.Content: {fault.Reset: unknown, fault.HangUp: unknown},
	fault.Dot: {
		fault.Silence: unknown, fault.Temporary: policy, fault.Permanent: rejected, fault.Barred: policy,
		fault.Leaving: down, fault.HangUp: unknown, fault.Reset: unknown,
		fault.Drip: unknown, fault.Garbage: unknown, fault.Endless: unknown,
		fault.LongLine: unknown, fault.WrongCode: unknown, fault.Chatter: {},
	},
}

var atSetup = map[fault.Kind]end{
	fault.Silence: down, fault.Temporary: down, fault.Permanent: down, fault.Barred: down,
	fault.Leaving: down, fault.HangUp: down, fault.Reset: down, fault.Drip: down,
	fault.Garbage: down, fault.Endless: down, fault.LongLine: down, fault.WrongCode: down,
}

// What a recipient can bring about is held against no relay: a visitor who names recipients
// could otherwise stop the email of all.
var atRCPT = map[fault.Kind]end{
	fault.Silence: deferred, fault.Temporary: deferred, fault.Permanent: rejected, fault.Barred: deferred,
	fault.Leaving: deferred, fault.HangUp: deferred, fault.Reset: deferred, fault.Drip: deferred,
	fault.Garbage: deferred, fault.Endless: deferred, fault.LongLine: deferred, fault.WrongCode: deferred, fault.Chatter: policy,
}

// endOf looks a fault up. Where MAIL and RCPT went out as one group, or their answers came as
// one packet, a connection that breaks before MAIL is answered may wait on the recipient.
func endOf(script fault.Script) (end, bool) {
	want, ok := ends[script.At][script.Kind]
	if !ok && (script.At == fault.MAIL || script.At == fault.DATA) {
		want, ok = atSetup[script.Kind]
	}
	answered := map[fault.Kind]bool{fault.Temporary: true, fault.Permanent: true, fault.Barred: true, fault.Leaving: true, fault.WrongCode: true, fault.Chatter: true}
	if script.At == fault.MAIL && !script.NoPipelining && !answered[script.Kind] {
		return deferred, ok
	}
	return want, ok
}

// What a sender learns, what can have been delivered and what the next emails find, when a relay
// does this at that step.
func TestSend_EachFaultAtEachStep_Outcome(t *testing.T) {
	t.Parallel()
	for step := range ends {
		for kind := range atRCPT {
			for name, script := range map[string]fault.Script{"one by one": {NoPipelining: true}, "in a group": {}, "held back": {HoldBack: true}} {
				script.At, script.Kind = step, kind
				want, ok := endOf(script)
				if !ok || script.HoldBack && (step != fault.RCPT || kind == fault.Endless || kind == fault.LongLine) {
					continue // what never ends cannot be held back
				}
				script.DripEvery = ample / 4
				t.Run(fmt.Sprintf("%s/%s/%s", step, kind, name), func(t *testing.T) {
					t.Parallel()
					suffer(t, script, want)
				})
			}
		}
	}
}

// suffer sends one email to a relay with one fault and checks all that must
// hold whatever the fault is.
func suffer(t *testing.T, script fault.Script, want end) {
	s := fault.Run(t, script)
	var log bytes.Buffer
	o := facing(script, ample)
	o.Breaker.Failures, o.Breaker.Cooldown = 1, time.Hour
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := newRelays(t, o, s.URL())
	began := time.Now()
	_, err := send(t.Context(), r, letter())
	if took := time.Since(began); took > hanging {
		t.Errorf("took %v", took)
	}
	checkOutcome(t, err, want.outcome)
	if got := r.Stats()[0].CircuitOpen; got != want.opens {
		t.Errorf("the breaker is open: %v, want %v", got, want.opens)
	}
	mayHaveArrived := want.outcome == "" || script.At == fault.Dot
	if got := len(s.Mails()); got > 1 || (got == 1 && !mayHaveArrived) {
		t.Errorf("%d emails arrived whole", got)
	}
	heard := heardBy(s)
	if strings.Count(heard, "RCPT") > 1 || strings.Contains(heard, "TEXT") && !mayHaveArrived && script.At != fault.Content {
		t.Errorf("the relay heard %s", heard)
	}
	if said := log.String(); want.outcome != "" && strings.Count(said, "outcome="+string(want.outcome)) != 1 {
		t.Errorf("the log says\n%s", said)
	}
	if shown := log.String() + fmt.Sprint(err); strings.Contains(shown, "secret.example") {
		t.Errorf("an address is shown: %s", shown)
	}
	closeRelays(t, r)
	servertest.Eventually(t, "no connection is left", func() bool { return s.Open() == 0 })
}

// A send is deferred only if all relays that were asked put the recipient off.
func TestSend_SeveralRelays_DeferredIfAllDefer(t *testing.T) {
	t.Parallel()
	later, down := fault.Script{At: fault.RCPT, Kind: fault.Temporary}, fault.Script{At: fault.Banner, Kind: fault.HangUp}
	for name, c := range map[string]struct {
		relays []fault.Script
		again  bool // when the first may be left alone
		want   relay.Outcome
	}{
		"both defer":              {[]fault.Script{later, later}, false, relay.Deferred},
		"the first is down":       {[]fault.Script{down, later}, false, relay.Unavailable},
		"the first is left alone": {[]fault.Script{down, later}, true, relay.Deferred},
		"both are left alone":     {[]fault.Script{down, down}, true, relay.Unavailable},
		"the second is down":      {[]fault.Script{later, down}, false, relay.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := steady()
			o.Breaker.Failures = 1
			r := newRelays(t, o, fault.Run(t, c.relays[0]).URL(), fault.Run(t, c.relays[1]).URL())
			_, err := send(t.Context(), r, letter())
			if c.again {
				_, err = send(t.Context(), r, letter())
			}
			checkOutcome(t, err, c.want)
		})
	}
}

// A caller who goes away before the final dot gets the email back. Afterwards the outcome is
// unknown. A Close whose context ends does the same to all.
func TestSend_CutOff_OutcomeByStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step    fault.Step
		arrived string // in what the relay has heard by then
		want    relay.Outcome
	}{
		{fault.Banner, "", relay.Unavailable},
		{fault.MAIL, "MAIL FROM", relay.Unavailable},
		{fault.RCPT, "RCPT TO", relay.Deferred},
		{fault.DATA, "DATA", relay.Unavailable},
		{fault.Dot, "\r\n.\r\n", relay.Unknown},
	} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/closed %t", c.step, closed), func(t *testing.T) {
				t.Parallel()
				s := fault.Run(t, fault.Script{At: c.step, Kind: fault.Silence, NoPipelining: true})
				o := steady()
				o.Command, o.FinalDot, o.Deadline = time.Hour, time.Hour, time.Hour
				r := newRelays(t, o, s.URL())
				ctx, cancel := context.WithCancel(t.Context())
				failed := make(chan error, 1)
				go func() {
					own := ctx
					if closed {
						own = t.Context()
					}
					_, err := send(own, r, letter())
					failed <- err
				}()
				servertest.Eventually(t, "the relay heard "+c.arrived, func() bool {
					heard := s.Received()
					return len(heard) == 1 && bytes.Contains(heard[0], []byte(c.arrived))
				})
				cancel()
				if closed {
					if err := r.Close(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("Close: %v", err)
					}
				}
				err := <-failed
				checkOutcome(t, err, c.want)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("err = %v, want it to say that it was cancelled", err)
				}
				servertest.Eventually(t, "no connection is left", func() bool { return s.Open() == 0 })
			})
		}
	}
}
