package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

func TestCommit_Text_ArrivesUnchanged(t *testing.T) {
	s := must.Get(sandbox.Start(sandbox.Options{}))(t)
	defer s.Close()
	r := newRelays(t, steady(), s.URL())
	for name, text := range map[string]string{
		"ordinary":           "Subject: a\r\n\r\nb\r\n",
		"dots":               "Subject: a\r\n\r\n.\r\n..\r\n...b\r\nc.\r\n.\r\n",
		"a dot at the start": ".x\r\n",
		"empty lines":        "\r\n\r\n\r\n",
		"longest line":       strings.Repeat("x", 998) + "\r\n",
	} {
		m := letter()
		m.Bytes = []byte(text)
		receipt := mustSend(t, r, m)
		if receipt.Relay != s.Addr() || receipt.Reply.Code != 250 || receipt.Reply.Enhanced != "2.0.0" {
			t.Errorf("%s: receipt %+v", name, receipt)
		}
		kept := s.List()
		if got := kept[len(kept)-1]; string(got.Raw) != text || got.From != m.From.String() || len(got.To) != 1 || got.To[0] != m.To.String() {
			t.Errorf("%s: arrived %q from %s to %v", name, got.Raw, got.From, got.To)
		}
	}
}

// A text that is not fit for the wire is refused, and no octet of it leaves.
func TestCommit_Unsendable_Refused(t *testing.T) {
	s := fault.Run(t, fault.Script{})
	r := newRelays(t, steady(), s.URL())
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
		m := letter()
		m.Bytes = []byte(text)
		if _, err := send(t.Context(), r, m); !errors.Is(err, relay.ErrUnsendable) {
			t.Errorf("%s: %v, want ErrUnsendable", name, err)
		}
	}
	if heard := strings.ReplaceAll(heardBy(s), "EHLO MAIL RCPT DATA", ""); strings.Trim(heard, ", ") != "" {
		t.Errorf("the relay heard %s", heard)
	}
}

// No octet of the text goes out before Commit. An aborted email never leaves, and is not held
// against the relay; after Commit, Abort does nothing.
func TestAbort_AfterBegin_MailNeverLeaves(t *testing.T) {
	o := steady()
	o.Breaker.Failures = 1
	first, second := fault.Run(t, fault.Script{}), fault.Run(t, fault.Script{})
	relays := newRelays(t, o, first.URL(), second.URL())
	begin := func() relay.Tx {
		return must.Get(relays.Begin(t.Context(), envelope(letter())))(t)
	}
	begin().Abort()
	servertest.Eventually(t, "the aborted connection is closed", func() bool { return first.Open() == 0 })
	tx := begin()
	if heard := heardBy(first); heard != "EHLO MAIL RCPT DATA, EHLO MAIL RCPT DATA" {
		t.Errorf("the relay heard %s", heard)
	}
	receipt, err := tx.Commit(letter().Bytes)
	tx.Abort()
	if err != nil || receipt.Relay != first.Addr() || len(first.Mails()) != 1 || first.Open() != 1 || len(second.Received()) != 0 {
		t.Errorf("%+v, %v; %d emails over %d connections", receipt, err, len(first.Mails()), first.Open())
	}
}

// A relay that had little of the time it is allowed is not blamed for its silence: else emails
// that wait until their time is nearly up could open the breaker. One that is silent for half
// of all the time is, also where a send may not take as long as one step may. Its token server's
// silence is its own.
func TestCircuit_SilentRelay_BlamedIfItHadTime(t *testing.T) {
	t.Parallel()
	tr := newTrust(t)
	for _, script := range []fault.Script{
		{At: fault.Banner}, {At: fault.EHLO}, {At: fault.AUTH, TLS: tr.good()}, {At: fault.MAIL, NoPipelining: true}, {At: fault.DATA}, {At: fault.Dot},
	} {
		script.Kind = fault.Silence
		for name, c := range map[string]struct {
			deadline, own time.Duration
			opens         bool
		}{
			"the caller has little time": {10 * hanging, time.Second + patience, false},
			"the relay had half of it":   {8 * patience, time.Hour, true},
		} {
			t.Run(string(script.At)+"/"+name, func(t *testing.T) {
				t.Parallel()
				o := steady()
				o.Deadline, o.Breaker.Failures, o.Breaker.Cooldown = c.deadline, 1, time.Hour
				s := fault.Run(t, script)
				where := s.URL()
				if script.TLS != nil {
					where = tr.oauth(t, "smtp", s.Addr(), mailtest.StartTokens(t, mailtest.Hang))
				}
				r := newRelays(t, o, where)
				ctx, cancel := context.WithTimeout(t.Context(), c.own)
				defer cancel()
				want := relay.Unavailable
				if script.At == fault.Dot {
					want = relay.Unknown
				}
				began := time.Now()
				checkSend(t, ctx, r, letter(), want)
				if got, took := r.Stats()[0].CircuitOpen, time.Since(began); got != c.opens || len(s.Received()) == 0 || took > hanging {
					t.Errorf("after %v the breaker is open: %v; asked %d times", took, got, len(s.Received()))
				}
			})
		}
	}
}

// Neither another connection nor another relay is begun when the first took nearly all the time
// there was. One that stops reading halfway through a text, which no buffer holds, has no email.
func TestSend_TooLate_NoSecondTry(t *testing.T) {
	t.Parallel()
	great := letter()
	great.Bytes = append(great.Bytes, bytes.Repeat([]byte("0123456789\r\n"), 2<<20)...)
	for step, at := range map[relay.Step]fault.Step{
		relay.StepBanner: fault.Banner, relay.StepMAIL: fault.MAIL, relay.StepContent: fault.Content,
	} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			first, second := fault.Run(t, fault.Script{NoPipelining: true}), fault.Run(t, fault.Script{})
			o := steady()
			o.Command, o.FinalDot = time.Second, time.Second
			r := newRelays(t, o, first.URL(), second.URL())
			if at == fault.MAIL { // over a kept connection
				mustSend(t, r, letter())
			}
			mails := len(first.Mails())
			first.Play(fault.Script{At: at, Kind: fault.Silence, NoPipelining: true, DripEvery: 250 * time.Millisecond})
			ctx, cancel := context.WithTimeout(t.Context(), 1100*time.Millisecond)
			defer cancel()
			_, err := send(ctx, r, great)
			checkFailure(t, err, relay.Unavailable, step, nil)
			if one, other := len(first.Received()), len(second.Received()); one != 1 || other != 0 || len(first.Mails()) != mails {
				t.Errorf("%d connections to the first relay and %d to the second, want 1 and 0; %d emails", one, other, len(first.Mails()))
			}
		})
	}
}

var recipients = regexp.MustCompile(`(?mi)^RCPT TO:(.*)\r\n`)

// FuzzWire sends an email to whatever is taken for an address and reads the octets that
// reached the relay: one RCPT, for the canonical address and nothing beside it, and no CR or
// LF on its own.
func FuzzWire(f *testing.F) {
	for _, text := range []string{
		"Alice+x@Example.com", "a@bücher.example", "a|b`c{d}@odd.example", "/etc/passwd@odd.example", "-f@odd.example",
		"a@b.example> ORCPT=rfc822;x", "a@b.example\r\nRCPT TO:<x@y.example>", `"a b"@c.example`, "@relay.example:a@b.example", "a,b@c.example",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to, err := address.Parse(text, address.Identity{})
		if err != nil {
			return
		}
		server := fault.Run(t, fault.Script{})
		m := compose(t, "Acme <no-reply@acme.example>", message.Request{To: to, Code: "123456", ID: "wire"})
		mustSend(t, newRelays(t, steady(), server.URL()), m)
		received := server.Received()
		if len(received) != 1 {
			t.Fatalf("%d connections", len(received))
		}
		found := recipients.FindAllSubmatch(received[0], -1)
		if len(found) != 1 || string(found[0][1]) != "<"+to.String()+">" {
			t.Fatalf("the recipients on the wire are %q, want %q alone", found, to.String())
		}
		if rest := bytes.ReplaceAll(received[0], []byte("\r\n"), nil); bytes.ContainsAny(rest, "\r\n") {
			t.Fatalf("a CR or LF on its own in %q", received[0])
		}
	})
}

func ExampleRelays_Begin() {
	ctx := context.Background()
	box, err := sandbox.Start(sandbox.Options{}) // stands in for your relay
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	url, _ := relay.ParseURL(box.URL())
	relays, err := relay.New([]relay.URL{url}, relay.Options{Deadline: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer relays.Close(ctx)

	from, _ := address.Parse("no-reply@acme.example", address.Identity{})
	to, _ := address.Parse("alice@example.com", address.Identity{})
	tx, err := relays.Begin(ctx, relay.Envelope{From: from, To: []address.Address{to}})
	if err != nil {
		fmt.Println(err) // the email never left, or was refused for good
		return
	}
	defer tx.Abort() // does nothing after Commit
	// The email may leave from here on: note that where it must be known after a crash.
	receipt, err := tx.Commit([]byte("Subject: your code\r\n\r\n123456\r\n"))
	fmt.Println(receipt.Reply.Code, err)
	// Output: 250 <nil>
}

// An email to several recipients leaves to all of them or to none, and the one that a relay refused
// is named.
func TestBegin_SeveralRecipients_AllOrNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  fault.Script
		outcome relay.Outcome
		named   bool
		heard   string
	}{
		"taken":                    {fault.Script{}, "", false, "EHLO MAIL RCPT RCPT RCPT DATA TEXT"},
		"taken, one by one":        {fault.Script{NoPipelining: true}, "", false, "EHLO MAIL RCPT RCPT RCPT DATA TEXT"},
		"one refused":              {fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "two"}, relay.Rejected, true, "EHLO MAIL RCPT RCPT RCPT DATA"},
		"one refused, one by one":  {fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "two", NoPipelining: true}, relay.Rejected, true, "EHLO MAIL RCPT RCPT"},
		"one deferred":             {fault.Script{At: fault.RCPT, Kind: fault.Temporary, To: "two"}, relay.Deferred, true, "EHLO MAIL RCPT RCPT RCPT DATA"},
		"one deferred, one by one": {fault.Script{At: fault.RCPT, Kind: fault.Temporary, To: "two", NoPipelining: true}, relay.Deferred, true, "EHLO MAIL RCPT RCPT"},
		"text refused":             {fault.Script{At: fault.Dot, Kind: fault.Permanent}, relay.Rejected, false, "EHLO MAIL RCPT RCPT RCPT DATA TEXT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fault.Run(t, c.script)
			r := newRelays(t, steady(), s.URL())
			to := []address.Address{parse("one@acme.example"), parse("two@acme.example"), parse("three@other.example")}
			tx, err := r.Begin(t.Context(), relay.Envelope{From: letter().From, To: to})
			if err == nil {
				_, err = tx.Commit(letter().Bytes)
			}
			checkOutcome(t, err, c.outcome)
			if failure, ok := errors.AsType[*relay.Error](err); ok && (failure.To == to[1]) != c.named {
				t.Errorf("%q is named", failure.To.String())
			}
			if heard := heardBy(s); heard != c.heard {
				t.Errorf("the relay heard %s", heard)
			}
			if mails := s.Mails(); c.outcome == "" && (len(mails) != 1 || mails[0].To != "one@acme.example two@acme.example three@other.example") {
				t.Errorf("%+v", mails)
			}
		})
	}
}

// Octets above 127 go to a relay that takes them, as they are, and to no other.
func TestBegin_EightBitText_OnlyWhereItIsTaken(t *testing.T) {
	without, with := fault.Run(t, fault.Script{NoEightBit: true}), fault.Run(t, fault.Script{})
	text := []byte("Subject: code\r\n\r\nüäö 123456\r\n")
	e := envelope(letter())
	e.EightBit = true
	_, err := newRelays(t, steady(), without.URL()).Begin(t.Context(), e)
	checkOutcome(t, err, relay.Unavailable)
	if !errors.Is(err, relay.ErrEightBit) || heardBy(without) != "EHLO" {
		t.Errorf("%v; the relay heard %s", err, heardBy(without))
	}
	tx := must.Get(newRelays(t, steady(), without.URL(), with.URL()).Begin(t.Context(), e))(t)
	if _, err := tx.Commit(text); err != nil || string(with.Mails()[0].Text) != string(text) {
		t.Errorf("%v, %v", err, with.Mails())
	}
	if heard := string(with.Received()[0]); !strings.Contains(heard, "> BODY=8BITMIME\r\n") {
		t.Errorf("the relay heard %q", heard)
	}
}

// A text that cannot be on its way in time does not leave.
func TestBegin_NotReadyInTime_NothingLeaves(t *testing.T) {
	t.Parallel()
	for _, step := range []fault.Step{fault.Banner, fault.MAIL, fault.RCPT, fault.DATA} {
		s := fault.Run(t, fault.Script{At: step, Kind: fault.Silence})
		e, began := envelope(letter()), time.Now()
		e.By = began.Add(patience)
		_, err := newRelays(t, steady(), s.URL()).Begin(t.Context(), e)
		if failure, ok := errors.AsType[*relay.Error](err); !ok || failure.Outcome == relay.Unknown || failure.Outcome == relay.Rejected || time.Since(began) > hanging/2 {
			t.Errorf("silent at %s: %v after %s", step, err, time.Since(began))
		}
	}
	ready := 4 * patience // a loaded machine is ready within it, too
	s := fault.Run(t, fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: 2 * ready / 20})
	e := envelope(letter())
	e.By = time.Now().Add(ready)
	tx := must.Get(newRelays(t, steady(), s.URL()).Begin(t.Context(), e))(t)
	if _, err := tx.Commit(letter().Bytes); err != nil {
		t.Errorf("a slow answer to a text that left in time: %v", err)
	}
}
