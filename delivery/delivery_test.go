package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
	"github.com/prometheus/client_golang/prometheus"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// bench is a service whose store, relay and clock a test has in hand.
type bench struct {
	*Service
	t       *testing.T
	log     *bytes.Buffer
	refunds *prometheus.CounterVec
	store   *cache.Store
	now     atomic.Int64
	keys    *idempotency.Requests
	relay   fakeRelay

	suppressions *suppression.List
	passes       *throttle.Limiter
}

const lease = 30_000

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, log: new(bytes.Buffer), refunds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "refunds"}, []string{"result"})}
	b.now.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli())
	b.store = must.Get(cache.Open(cache.Options{Now: b.now.Load}))(t)
	b.keys = idempotency.New(keyed.Local(b.store.Table("requests")), lease)
	codes := must.Get(verify.New(verify.Options{Store: keyed.Local(b.store.Table("codes")), Secret: bytes.Repeat([]byte("s"), 32),
		Guesses: local.New(b.store.Table("guesses"), must.Get(throttle.ParsePolicy("day=9/24h"))(t))}))(t)
	b.suppressions = must.Get(suppression.Open(t.Context(), suppression.Options{Table: b.store.Table("suppressions"), Events: b.store.Table("events"), Now: b.now.Load}))(t)
	t.Cleanup(b.suppressions.Close)
	b.passes = local.New(b.store.Table("passes"), must.Get(throttle.ParsePolicy("day=1/24h"))(t))
	b.Service = New(Options{
		Suppressions: b.suppressions, Passes: b.passes, Proofs: must.Get(proof.New([]string{"ses"}, bytes.Repeat([]byte("s"), 32)))(t), Relay: &b.relay, Codes: codes, Requests: b.keys, StoreTimeout: 2 * time.Second, Now: b.now.Load,
		Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Metrics: Metrics{
			Decisions:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "decisions"}),
			Relays:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "relays"}, []string{"outcome"}),
			Refunds:    b.refunds,
			Suppressed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "suppressed"}, []string{"reason"}),
		},
	})
	return b
}

func (b *bench) count(result string) int {
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.refunds)
	for _, family := range must.Get(registry.Gather())(b.t) {
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == result {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}

// fakeRelay ends in ways that no real relay does on demand.
type fakeRelay struct {
	begin, commit error
	panics        string // the method that panics
	aborted       int
	committed     int
}

func (f *fakeRelay) Begin(context.Context, relay.Envelope) (relay.Tx, error) {
	if f.begin != nil {
		return nil, f.begin
	}
	if f.panics == "begin" {
		panic("begin")
	}
	return f, nil
}

func (f *fakeRelay) Commit([]byte) (relay.Receipt, error) {
	f.committed++
	if f.panics == "commit" {
		panic("commit")
	}
	return relay.Receipt{}, f.commit
}

// Abort ends every transaction; after Commit it changes nothing.
func (f *fakeRelay) Abort() { f.aborted++ }

// limiters are an exact limit for the mailbox and for the caller, and a counter for all.
type limiters struct {
	faults               *throttletest.Faulty // of mailbox
	mailbox, caller, all *throttle.Limiter
}

func (b *bench) send() (Send, limiters) {
	b.t.Helper()
	exact := must.Get(throttle.ParsePolicy("day=9/24h"))(b.t)
	counter := must.Get(throttle.NewFixedWindow(throttle.Tier{Name: "day", Limit: 9, Window: 24 * time.Hour}))(b.t)
	faults := &throttletest.Faulty{}
	l := limiters{
		faults, faults.Break(local.New(b.store.Table("mailbox"), exact)),
		local.New(b.store.Table("caller"), exact), local.New(b.store.Table("all"), counter),
	}
	set := must.Get(rules.New(rules.Options{},
		rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: l.mailbox},
		rules.Rule{Name: "caller", By: rules.ByAPIKey, Limiter: l.caller},
		rules.Rule{Name: "all", By: rules.ByAll, Limiter: l.all},
	))(b.t)
	from := must.Get(message.ParseSender("Acme <no-reply@acme.example>"))(b.t)
	to := must.Get(address.Parse("alice@example.com", address.Identity{}))(b.t)
	return Send{
		Rules: set, Composer: must.Get(message.NewComposer(from, must.Get(message.LoadTemplates(nil, "en"))(b.t)))(b.t),
		Mail:   message.Request{To: to},
		Traits: rules.Send{Mailbox: to.Key(), Caller: "shop"},
	}, l
}

// used is how many sends each of them has counted.
func (l limiters) used(t *testing.T) string {
	t.Helper()
	left := func(l *throttle.Limiter, key string) int {
		return 9 - must.Get(l.Peek(t.Context(), key))(t).Remaining()
	}
	return fmt.Sprint(left(l.mailbox, "alice@example.com"), left(l.caller, "shop"), left(l.all, "all"))
}

var key = idempotency.Name{Caller: "shop", Key: "k"}

// What came of an email decides what stays charged, whether the key is free, and whether the
// answer is kept.
func TestSend_EachOutcome_ChargesAndFrees(t *testing.T) {
	failed := func(o relay.Outcome) error { return &relay.Error{Outcome: o} }
	for name, tt := range map[string]struct {
		relay fakeRelay
		kind  Kind
		used  string
		keeps bool
	}{
		"accepted":              {fakeRelay{}, "", "1 1 1", true},
		"rejected at RCPT":      {fakeRelay{begin: failed(relay.Rejected)}, Rejected, "1 1 1", true},
		"rejected at the end":   {fakeRelay{commit: failed(relay.Rejected)}, Rejected, "1 1 1", true},
		"no relay":              {fakeRelay{begin: failed(relay.Unavailable)}, Unavailable, "0 0 0", false},
		"4xx at the end":        {fakeRelay{commit: failed(relay.Unavailable)}, Unavailable, "0 0 0", false},
		"too many wait":         {fakeRelay{begin: failed(relay.Busy)}, Busy, "0 0 0", false},
		"no answer":             {fakeRelay{commit: failed(relay.Unknown)}, Unknown, "1 1 1", true},
		"not to be sent":        {fakeRelay{commit: relay.ErrUnsendable}, Failed, "0 0 0", false},
		"an unknown error":      {fakeRelay{commit: errors.New("?")}, Failed, "1 1 1", true},
		"an unknown one before": {fakeRelay{begin: errors.New("?")}, Failed, "0 0 0", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.relay = tt.relay
			q, l := b.send()
			attempt, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = attempt.Send(q)
			if kind := kindOf(err); kind != tt.kind || attempt.Answered() != tt.keeps || l.used(t) != tt.used {
				t.Errorf("%q, keeps %t, used %s", kind, attempt.Answered(), l.used(t))
			}
			attempt.Finish(idempotency.Answer{Status: 200, Body: []byte("first")})
			next, replay, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{})
			if tt.keeps && (replay == nil || string(replay.Body) != "first") || !tt.keeps && (next == nil || err != nil) {
				t.Errorf("a retry is answered %v, %v, %v", next, replay, err)
			}
		})
	}
}

// What a send does not need while a relay is slow is freed before the relay is asked.
func TestSend_Admitted_DecidedBeforeTheRelayIsAsked(t *testing.T) {
	b := newBench(t)
	q, _ := b.send()
	q.Decided = func() { b.relay.begin = &relay.Error{Outcome: relay.Rejected} }
	if _, err := b.Attempt(t.Context(), "r").Send(q); kindOf(err) != Rejected {
		t.Errorf("%v: the relay was asked before", err)
	}
}

// A store that takes a step and fails with its error, if there is one.
type unheard struct {
	keyed.Store
	err   error
	steps int
}

func (u *unheard) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	u.steps++
	alone, err := u.Store.Update(ctx, key, step)
	return alone, errors.Join(err, u.err)
}

// A key that may have been begun unheard is freed; where certainly nothing was recorded, the
// store is left alone.
func TestBegin_ReplyLost_KeyIsFreed(t *testing.T) {
	for _, tt := range []struct {
		err   error
		steps int
	}{{throttle.ErrUnavailable, 2}, {errors.Join(throttle.ErrUnavailable, throttle.ErrUnchanged), 1}} {
		b := newBench(t)
		store := &unheard{keyed.Local(b.store.Table("requests")), tt.err, 0}
		b.Service.o.Requests = idempotency.New(store, lease)
		if _, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{}); kindOf(err) != Storage || store.steps != tt.steps {
			t.Errorf("%v after %d steps, want %d", err, store.steps, tt.steps)
		}
		store.err = nil
		if next, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{}); tt.steps == 2 && next == nil {
			t.Errorf("the key is not free: %v", err)
		}
	}
}

func kindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// An attempt that takes over from a killed one refunds what that was charged by every exact
// rule; a counter is charged twice.
func TestSend_AfterAKilledAttempt_ChargesExactRulesOnce(t *testing.T) {
	b := newBench(t)
	q, l := b.send()
	killed := must.Get(b.keys.Begin(t.Context(), key, idempotency.Fingerprint{}))(t)
	must.Get(q.Rules.Take(t.Context(), q.Traits, killed.Lease.AdmissionID()))(t)
	b.now.Add(lease)
	attempt, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := attempt.Send(q); err != nil || l.used(t) != "1 1 2" {
		t.Errorf("%v, used %s", err, l.used(t))
	}
}

// An attempt that wakes after its lease sends nothing and refunds its own charge only.
func TestSend_LeaseEnded_SendsNothing(t *testing.T) {
	b := newBench(t)
	q, l := b.send()
	late, _, _ := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{})
	b.now.Add(lease)
	next, _, _ := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{})
	if _, err := next.Send(q); err != nil {
		t.Fatal(err)
	}
	_, err := late.Send(q)
	if kindOf(err) != Unknown || late.Answered() || b.relay.committed != 1 || b.relay.aborted != 2 || l.used(t) != "1 1 1" {
		t.Errorf("%v, answered %t, %d sent, %d aborted, used %s", err, late.Answered(), b.relay.committed, b.relay.aborted, l.used(t))
	}
}

var errAway = errors.New("the store is away")

// later does a refund in the background.
func (b *bench) later(release func(context.Context) error) {
	b.Service.refunds.later(&refund{id: throttle.NewID(), release: release})
}

// What fails is tried again for a minute, and holds up no other.
func TestRefund_StoreFails_IsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var tries atomic.Int32
		b.later(func(context.Context) error { return errAway })
		b.later(func(ctx context.Context) error { return hang(ctx) })
		b.later(func(context.Context) error {
			if tries.Add(1) < 3 {
				return errAway
			}
			return nil
		})
		time.Sleep(5 * time.Second) // of the test's own clock
		synctest.Wait()
		if b.count(RefundDone) != 1 || b.count(RefundGivenUp) != 0 || tries.Load() != 3 {
			t.Errorf("%d done, %d given up, %d tries", b.count(RefundDone), b.count(RefundGivenUp), tries.Load())
		}
		time.Sleep(refundLife)
		synctest.Wait()
		if b.count(RefundGivenUp) != 2 || strings.Count(b.log.String(), "could not be refunded") != 2 {
			t.Errorf("%d given up, the log says\n%s", b.count(RefundGivenUp), b.log)
		}
		b.store.Close()
	})
}

// What one rule cannot refund now is refunded later, and the key is free after that.
func TestSend_OneRuleCannotRefund_IsTriedAgain(t *testing.T) {
	b := newBench(t)
	b.relay.begin = &relay.Error{Outcome: relay.Unavailable}
	q, l := b.send()
	l.faults.Fail("release")
	first, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{})
	must.OK(t, err)
	if _, err := first.Send(q); kindOf(err) != Unavailable || l.used(t) != "1 0 0" {
		t.Fatalf("%v, used %s", err, l.used(t))
	}
	if _, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{}); kindOf(err) != InFlight {
		t.Errorf("before the refund the key is free: %v", err)
	}
	l.faults.Fail()
	b.Close(t.Context())
	if next, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{}); next == nil || err != nil || l.used(t) != "0 0 0" {
		t.Errorf("%v, used %s", err, l.used(t))
	}
}

// A charge that is not on the drive yet is no reason to send.
func TestSend_WriteHangs_RelayIsNotAsked(t *testing.T) {
	b, dir := newBench(t), t.TempDir()
	b.store = must.Get(cache.Open(cache.Options{Dir: dir, Now: b.now.Load}))(t)
	defer b.store.Close()
	q, _ := b.send()
	other := must.Get(sqlite.OpenConn(filepath.Join(dir, "history.db")))(t)
	defer other.Close() // which rolls back
	if err := sqlitex.ExecuteTransient(other, "BEGIN IMMEDIATE", nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Attempt(ctx, "r").Send(q)
	if kindOf(err) != Storage || b.relay.aborted != 0 || b.relay.committed != 0 {
		t.Errorf("%v; %d transactions, %d emails", err, b.relay.aborted, b.relay.committed)
	}
}

// The queue is bounded, and the end does not wait for a store that hangs: each is tried once
// more, and the log tells of all.
func TestRefund_StoreHangs_EndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var tries atomic.Int32
		for range maxRefunds + 1 {
			b.later(func(ctx context.Context) error {
				tries.Add(1)
				return hang(ctx)
			})
		}
		synctest.Wait()
		if b.count(RefundGivenUp) != 1 {
			t.Errorf("%d given up beyond the bound", b.count(RefundGivenUp))
		}
		began := time.Now()
		b.Close(t.Context())
		if took := time.Since(began); took > refundEnd {
			t.Errorf("it took %v", took)
		}
		if n := strings.Count(b.log.String(), "could not be refunded"); n != maxRefunds+1 || tries.Load() != 2*maxRefunds {
			t.Errorf("%d in the log after %d tries", n, tries.Load())
		}
		b.later(func(context.Context) error { return nil })
		if b.count(RefundGivenUp) != maxRefunds+2 {
			t.Error("one after the end is not given up")
		}
		b.store.Close()
	})
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// An answer whose key another attempt has is given up at once.
func TestFinish_LeaseIsAnothers_IsGivenUp(t *testing.T) {
	b := newBench(t)
	b.relay.begin = &relay.Error{Outcome: relay.Rejected}
	q, _ := b.send()
	first, _, _ := b.Begin(t.Context(), "the first", key, idempotency.Fingerprint{})
	_, _ = first.Send(q)
	b.now.Add(lease)
	if next, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{}); next == nil || err != nil {
		t.Fatal(err)
	}
	first.Finish(idempotency.Answer{Status: 422})
	b.Close(t.Context())
	if said := b.log.String(); strings.Count(said, "an answer could not be stored: ") != 1 || !strings.Contains(said, "after that sends again") || !strings.Contains(said, `request_id="the first"`) {
		t.Errorf("the log says\n%s", said)
	}
}

// A failed take of tiers is refunded by its id; a counter's is not, as it knows none.
func TestRefund_TiersAndCounter_OnlyKnownByIDIsReleased(t *testing.T) {
	b := newBench(t)
	_, l := b.send()
	id := throttle.NewID()
	for _, limiter := range []*throttle.Limiter{l.mailbox, l.all} {
		must.Get(limiter.TakeID(t.Context(), "s", id))(t)
		b.Refund(limiter, "s", id, slog.String("subject", "a hash"))
	}
	b.Close(t.Context())
	exact, counted := must.Get(l.mailbox.Peek(t.Context(), "s"))(t), must.Get(l.all.Peek(t.Context(), "s"))(t)
	if exact.Remaining() != 9 || counted.Remaining() != 8 || b.count(RefundDone) != 1 {
		t.Errorf("%d and %d remain, %d refunds", exact.Remaining(), counted.Remaining(), b.count(RefundDone))
	}
}

// A panic is a fault of the program: what certainly never left is refunded and its key is free, as
// with any other, and what may have left stays charged and is answered.
func TestSend_Panics_SettledAsFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(*bench, *Send, limiters)
		used   string
		keeps  bool
	}{
		"while it is charged": {func(_ *bench, _ *Send, l limiters) {
			l.faults.On(func(_ context.Context, event, _ string) error {
				if event == "taken" {
					panic("taken")
				}
				return nil
			})
		}, "0 0 0", false},
		"before the relay":    {func(_ *bench, q *Send, _ limiters) { q.Composer = nil }, "0 0 0", false},
		"at the relay":        {func(b *bench, _ *Send, _ limiters) { b.relay.panics = "begin" }, "0 0 0", false},
		"while it was handed": {func(b *bench, _ *Send, _ limiters) { b.relay.panics = "commit" }, "1 1 1", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			q, l := b.send()
			tt.damage(b, &q, l)
			attempt, _, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{})
			must.OK(t, err)
			_, err = attempt.Send(q)
			l.faults.On(func(context.Context, string, string) error { return nil })
			b.Close(t.Context()) // of refunds in the background
			broken, told := errors.AsType[recovered.Error](err)
			if kindOf(err) != Failed || attempt.Answered() != tt.keeps || l.used(t) != tt.used || !told || broken.Stack == "" {
				t.Errorf("%v, keeps %t, used %s", err, attempt.Answered(), l.used(t))
			}
			attempt.Finish(idempotency.Answer{Status: 500})
			next, replay, err := b.Begin(t.Context(), "r", key, idempotency.Fingerprint{})
			if err != nil || tt.keeps != (replay != nil) || tt.keeps == (next != nil) {
				t.Errorf("a retry is answered %v, %v, %v", next, replay, err)
			}
		})
	}
}

// Quota that was refunded is counted so, even where the code cannot be revoked, which the log says.
func TestRefund_CodeCannotBeRevoked_QuotaCountsAsRefunded(t *testing.T) {
	b := newBench(t)
	b.relay.begin = &relay.Error{Outcome: relay.Unavailable}
	q, l := b.send()
	store := &unheard{Store: keyed.Local(b.store.Table("codes"))}
	b.Service.o.Codes = must.Get(verify.New(verify.Options{Store: store, Secret: bytes.Repeat([]byte("s"), 32)}))(t)
	attempt := b.Attempt(t.Context(), "r")
	q.Decided = func() { store.err = errAway } // after the code is issued
	if _, err := attempt.Send(q); kindOf(err) != Unavailable || l.used(t) != "0 0 0" {
		t.Fatalf("%v, used %s", err, l.used(t))
	}
	b.Close(t.Context())
	if b.count(RefundDone) != 1 || b.count(RefundGivenUp) != 0 || !strings.Contains(b.log.String(), "a code could not be revoked") {
		t.Errorf("%d done, %d given up; the log says\n%s", b.count(RefundDone), b.count(RefundGivenUp), b.log)
	}
}
