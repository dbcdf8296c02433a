package relay_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
)

const (
	// patience is a timeout that is meant to run out. Where none is, it is hanging, so that a
	// busy machine changes no outcome.
	patience = 250 * time.Millisecond
	// ample is one that runs out in the trouble alone: what must go well before, goes under
	// it, too.
	ample = 3 * time.Second
	// hanging is when a send that should have ended is declared stuck.
	hanging = 20 * time.Second
)

// TestMain lets more tests run at once than there are processors: most of their time they wait
// for a timeout.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	m.Run()
}

// letter is what the tests send.
func letter() message.Message {
	return message.Message{
		From: parse("no-reply@acme.example"),
		To:   parse("recipient@secret.example"),
		Bytes: []byte("From: Acme <no-reply@acme.example>\r\nTo: recipient@secret.example\r\n" +
			"Subject: code\r\n\r\n.123456 is your code\r\n.\r\nbye\r\n"),
	}
}

// to is a letter to this domain.
func to(domain string) message.Message {
	m := letter()
	m.To = parse("recipient@" + domain)
	return m
}

// parse is for addresses that a test has made.
func parse(text string) address.Address {
	parsed, err := address.Parse(text, address.Identity{})
	if err != nil {
		panic(err)
	}
	return parsed
}

// settings are the options of Relays, and the limits that are none.
type settings struct {
	relay.Options
	relay.Limits
}

// steady are settings under which neither time nor the breaker decides.
func steady() settings {
	o := settings{relay.Options{MaxConns: 4, Deadline: 2 * hanging}, relay.Standard}
	o.Connect, o.Command, o.RCPT, o.FinalDot, o.Breaker.Failures = hanging, hanging, hanging, hanging, 1000
	return o
}

// facing is steady, but for the one timeout that this fault must run into.
func facing(script fault.Script, timeout time.Duration) settings {
	o := steady()
	switch {
	case script.Kind != fault.Silence && script.Kind != fault.Drip:
	case script.At == fault.Dot || script.At == fault.Content:
		o.FinalDot = timeout
	case script.At == fault.Handshake:
		o.Connect = timeout
	case script.At == fault.RCPT && script.HoldBack: // the answer to MAIL is not seen either
		o.RCPT, o.Command = timeout, timeout
	case script.At == fault.RCPT:
		o.RCPT = timeout
	default:
		o.Command = timeout
	}
	return o
}

func newRelays(t testing.TB, o settings, urls ...string) *relay.Relays {
	t.Helper()
	var parsed []relay.URL
	for _, text := range urls {
		parsed = append(parsed, must.Get(relay.ParseURL(text))(t))
	}
	r := must.Get(relay.New(parsed, o.Options.With(o.Limits)))(t)
	t.Cleanup(func() { closeRelays(t, r) })
	return r
}

func closeRelays(t testing.TB, r *relay.Relays) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hanging)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func envelope(m message.Message) relay.Envelope {
	return relay.Envelope{From: m.From, To: []address.Address{m.To}}
}

// send is one email from Begin to Commit.
func send(ctx context.Context, relays *relay.Relays, m message.Message) (relay.Receipt, error) {
	tx, err := relays.Begin(ctx, envelope(m))
	if err != nil {
		return relay.Receipt{}, err
	}
	return tx.Commit(m.Bytes)
}

// checkSend sends one email, and checks what comes of it.
func checkSend(t testing.TB, ctx context.Context, r *relay.Relays, m message.Message, want relay.Outcome) {
	t.Helper()
	_, err := send(ctx, r, m)
	checkOutcome(t, err, want)
}

func mustSend(t testing.TB, r *relay.Relays, m message.Message) relay.Receipt {
	t.Helper()
	return must.Get(send(t.Context(), r, m))(t)
}

// sendAtOnce sends so many emails at the same time, each to a domain of its own, and returns
// what came of each.
func sendAtOnce(t *testing.T, r *relay.Relays, many int) []error {
	t.Helper()
	errs := make([]error, many)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, errs[i] = send(t.Context(), r, to(fmt.Sprintf("acme%d.example", i))) })
	}
	group.Wait()
	return errs
}

func checkOutcome(t testing.TB, err error, want relay.Outcome) {
	t.Helper()
	failure, ok := errors.AsType[*relay.Error](err)
	if want == "" && err != nil || want != "" && (!ok || failure.Outcome != want) {
		t.Errorf("%v, want the outcome %q", err, want)
	}
}

func checkFailure(t *testing.T, err error, outcome relay.Outcome, step relay.Step, reply *relay.Reply) {
	t.Helper()
	failure, ok := errors.AsType[*relay.Error](err)
	if !ok || failure.Outcome != outcome || failure.Step != step {
		t.Fatalf("%v, want %v at %s", err, outcome, step)
	}
	if reply != nil && (failure.Reply == nil || *failure.Reply != *reply) {
		t.Errorf("the reply is %+v, want %+v", failure.Reply, *reply)
	}
}

var (
	emailText = regexp.MustCompile(`(?s)From: .*?(\r\n\.\r\n|$)`)
	verb      = regexp.MustCompile(`(?m)^\S+`)
)

// heardBy returns the verbs that a relay heard, connection by connection, and the email's text
// as TEXT.
func heardBy(s *fault.Server) string {
	var all []string
	for _, heard := range s.Received() {
		heard = emailText.ReplaceAll(heard, []byte("TEXT\r\n"))
		all = append(all, strings.Join(verb.FindAllString(string(heard), -1), " "))
	}
	return strings.Join(all, ", ")
}
