package api_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/verify"
)

// An alone keeper begins what another server may have done.
type alone struct{ idempotency.Keeper }

func (k alone) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	o, err := k.Keeper.Begin(ctx, name, body)
	o.Degraded = o.State == idempotency.Started
	return o, err
}

func (k alone) BeginAs(ctx context.Context, lease idempotency.Lease) (idempotency.Outcome, error) {
	o, err := k.Keeper.BeginAs(ctx, lease)
	o.Degraded = o.State == idempotency.Started
	return o, err
}

func aloneWith(own api.Repeats) api.Repeats {
	return api.Repeats{Answers: alone{own.Answers}, HandedOver: alone{own.HandedOver}}
}

// Where nobody else could be asked about a key the answer says so, and stays the same.
func TestOnceAlone(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) { o.Repeats.Answers = alone{o.Repeats.Answers} }})
	first := r.once("click", "alone@example.com")
	first.is(t, 200, "")
	if !strings.Contains(first.text, `"degraded":true`) {
		t.Errorf("the answer is %s", first.text)
	}
	if line := journal.about(t, first.header.Get("X-Request-Id"))[0]; line["degraded"] != true {
		t.Errorf("the log says %v", line)
	}
	r.once("click", "alone@example.com").again(t, first)
	r.once("another", "alone@example.com").is(t, 429, "quota-exceeded")
}

// What another server has charged under a key is not mailed again by one that cannot ask
// whether it was.
func TestOnceChargedElsewhere(t *testing.T) {
	r := newRig(t, setup{})
	r.once("click", "elsewhere@example.com").is(t, 200, "")
	apart := r.anotherWith(aloneWith(r.newRepeats()))
	apart.once("click", "elsewhere@example.com").is(t, 503, "store-unavailable")
	apart.once("click", "elsewhere@example.com").is(t, 503, "store-unavailable") // and not 409
	knowing := r.anotherWith(api.Repeats{Answers: alone{r.newRepeats().Answers}, HandedOver: r.repeats.HandedOver})
	knowing.once("click", "elsewhere@example.com").is(t, 504, "delivery-unknown")
	if len(r.box.List()) != 1 || r.used("elsewhere@example.com") != 1 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("elsewhere@example.com"))
	}
}

// Two mails of one key, by two servers of which one could not ask the other, are two
// admissions.
func TestOnceCountedTwice(t *testing.T) {
	r := newRig(t, setup{})
	apart := r.anotherWith(aloneWith(r.newRepeats()))
	first := apart.once("click", "twice@example.com")
	first.is(t, 200, "")
	r.once("click", "twice@example.com").is(t, 429, "quota-exceeded")
	r.now.Add(60_000)
	second := r.once("click", "twice@example.com")
	second.is(t, 200, "")
	if first.body["id"] == second.body["id"] || r.used("twice@example.com") != 2 {
		t.Errorf("the mails %v and %v are %d charges", first.body["id"], second.body["id"], r.used("twice@example.com"))
	}
}

// A cut limiter is one of a server that is cut off from the others: they are told later of
// what it gives back, and of what it takes while it is away.
type cut struct {
	throttle.Historian
	away bool // what it takes from now on it tells of
	tell []func()
}

func (c *cut) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	c.tell = append(c.tell, func() { c.Historian.Release(context.WithoutCancel(ctx), key, id) })
	return true, nil
}

// A place that one server gives back, and another hears of late, is not the one of the mail
// that the other has sent under the same key meanwhile.
func TestOnceGivenBackLate(t *testing.T) {
	r := newRig(t, setup{})
	far := &cut{Historian: r.limiter}
	apart := r.anotherAs(func(o *api.Options) {
		o.Live.Rules = onlyMailbox(t, far)
		o.Sender = fakeSender(func(context.Context, message.Message) error {
			return &relay.Error{Outcome: relay.Unavailable, Err: errors.New("the relay is down")}
		})
	})
	apart.once("click", "late@example.com").is(t, 503, "relay-unavailable")
	if r.used("late@example.com") != 1 {
		t.Fatal("the place is not to be given back yet")
	}
	r.once("click", "late@example.com").is(t, 200, "")
	for _, tell := range far.tell {
		tell()
	}
	if len(r.box.List()) != 1 || r.used("late@example.com") != 1 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("late@example.com"))
	}
}

func (c *cut) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	v, err := c.Historian.Take(ctx, key, id)
	v.Degraded = c.away
	if c.away && v.Allowed {
		c.tell = append(c.tell, func() {
			c.Historian.(throttle.Recorder).Record(context.WithoutCancel(ctx), key, throttle.Admission{ID: id, At: v.Now})
		})
	}
	return v, err
}

// A forgetful keeper keeps no answers.
type forgetful struct{ idempotency.Keeper }

func (f forgetful) Finish(context.Context, idempotency.Lease, idempotency.Answer) (bool, error) {
	return true, nil
}

// A server that is cut off between its charge and its mark sends the mail, and the others
// know of neither mark nor answer. If one of them takes up the charge and sends a second
// mail, there are two charges in the end.
func TestOnceCutOffBeforeTheMark(t *testing.T) {
	r := newRig(t, setup{policy: "day=10/24h"})
	far := &cut{Historian: r.limiter}
	apart := r.anotherAs(func(o *api.Options) {
		o.Live.Rules = onlyMailbox(t, far)
		o.Repeats = api.Repeats{Answers: forgetful{r.repeats.Answers}, HandedOver: cutOff{alone{r.newRepeats().HandedOver}, far}}
	})
	apart.once("click", "mark@example.com").is(t, 200, "")
	if len(r.box.List()) != 1 || r.used("mark@example.com") != 1 {
		t.Fatalf("%d mails, %d charged", len(r.box.List()), r.used("mark@example.com"))
	}
	r.now.Add(lease)
	r.once("click", "mark@example.com").is(t, 200, "")
	for _, tell := range far.tell {
		tell()
	}
	if len(r.box.List()) != 2 || r.used("mark@example.com") != 2 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("mark@example.com"))
	}
}

// A cutOff keeper is asked when the outage has begun.
type cutOff struct {
	idempotency.Keeper
	from *cut
}

func (k cutOff) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	k.from.away = true
	return k.Keeper.Begin(ctx, name, body)
}

// A mended keeper cannot ask the others when a request begins, and can a moment later.
type mended struct {
	idempotency.Keeper
	own   idempotency.Keeper
	later func() // happens in that moment
	again int    // how often it cannot after that either
}

func (k *mended) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	o, err := k.own.Begin(ctx, name, body)
	o.Degraded = o.State == idempotency.Started
	return o, err
}

func (k *mended) BeginAs(ctx context.Context, lease idempotency.Lease) (idempotency.Outcome, error) {
	k.later()
	if k.again > 0 {
		k.again--
		return alone{k.own}.BeginAs(ctx, lease)
	}
	return k.Keeper.BeginAs(ctx, lease)
}

// A server that is cut off for the moment of its mark has the others see it before the mail
// leaves. So if it is killed then, they send no second mail on its charge.
func TestOnceCutOffAtTheMark(t *testing.T) {
	for _, tries := range []int{0, 2} {
		r := newRig(t, setup{policy: "day=10/24h"})
		apart := r.anotherAs(func(o *api.Options) {
			marks := &mended{r.repeats.HandedOver, r.newRepeats().HandedOver, func() {}, tries}
			o.Repeats = api.Repeats{Answers: forgetful{r.repeats.Answers}, HandedOver: marks}
		})
		sent := apart.once("click", "mark@example.com")
		sent.is(t, 200, "")
		r.now.Add(lease)
		again := r.once("click", "mark@example.com")
		again.is(t, 504, "delivery-unknown")
		if len(r.box.List()) != 1 || r.used("mark@example.com") != 1 || again.body["id"] != sent.body["id"] {
			t.Errorf("%d mails, %d charged, answered %s", len(r.box.List()), r.used("mark@example.com"), again.text)
		}
	}
}

// A mail that the mailbox's rule leaves alone is not counted for it.
func TestOnceCutOffUncounted(t *testing.T) {
	const free = "free@example.com"
	r := newRig(t, setup{rules: func(_ *rig, own *rules.Rule) []rules.Rule {
		own.Exempt.Mailboxes = []string{free}
		return nil
	}})
	apart := r.anotherAs(func(o *api.Options) {
		o.Repeats.HandedOver = &mended{r.repeats.HandedOver, r.newRepeats().HandedOver, func() {}, 0}
	})
	apart.once("click", free).is(t, 200, "")
	if r.used(free) != 0 {
		t.Errorf("%d charged", r.used(free))
	}
}

// If it sleeps there, and another has taken up the charge and sent the mail when it wakes, it
// sends none; also where it learns of the charge before the mark.
func TestOnceAsleepAtTheMark(t *testing.T) {
	for _, tries := range []int{0, 1} {
		r := newRig(t, setup{policy: "day=10/24h"})
		var sent reply
		apart := r.anotherAs(func(o *api.Options) {
			o.Repeats.HandedOver = &mended{r.repeats.HandedOver, r.newRepeats().HandedOver, sync.OnceFunc(func() {
				r.now.Add(lease)
				sent = r.once("click", "asleep@example.com")
			}), tries}
		})
		got := apart.once("click", "asleep@example.com")
		sent.is(t, 200, "")
		got.is(t, 504, "delivery-unknown")
		if len(r.box.List()) != 1 || r.used("asleep@example.com") != 1 || got.body["id"] != sent.body["id"] {
			t.Errorf("%d mails, %d charged, answered %s", len(r.box.List()), r.used("asleep@example.com"), got.text)
		}
	}
}

// Where all can be asked but about the mark, no mail leaves on a charge that others may take
// up; and the place and the key are free.
func TestOnceNeverMarked(t *testing.T) {
	r := newRig(t, setup{})
	apart := r.anotherAs(func(o *api.Options) { o.Repeats.HandedOver = alone{r.newRepeats().HandedOver} })
	apart.once("click", "unmarked@example.com").is(t, 503, "store-unavailable")
	if len(r.box.List()) != 0 || r.used("unmarked@example.com") != 0 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("unmarked@example.com"))
	}
	r.once("click", "unmarked@example.com").is(t, 200, "")
}

// A frozen limiter stops a Take before it has charged anything, until it is let go.
type frozen struct {
	throttle.Historian
	entered, leave chan struct{}
}

func (f frozen) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	close(f.entered)
	<-f.leave
	return f.Historian.Take(context.WithoutCancel(ctx), key, id)
}

// A returning book counts the codes that are taken back.
type returning struct {
	verify.Book
	codes atomic.Int32
}

func (b *returning) Remove(ctx context.Context, mailbox string, h verify.Hash) error {
	b.codes.Add(1)
	return b.Book.Remove(ctx, mailbox, h)
}

// An attempt that stops before its charge, and wakes when another has sent the mail, gives
// back what it charges then, and its code: there is one mail.
func TestOnceChargedLate(t *testing.T) {
	r := newRig(t, setup{policy: "day=10/24h"})
	stop := frozen{r.limiter, make(chan struct{}), make(chan struct{})}
	book := &returning{Book: r.codes}
	late := r.anotherAs(func(o *api.Options) {
		o.Live.Rules, o.Codes = onlyMailbox(t, stop), book
		o.SendDeadline = time.Minute
	})
	woken := make(chan reply, 1)
	go func() { woken <- late.once("click", "late@example.com") }()
	<-stop.entered
	r.now.Add(lease)
	sent := r.once("click", "late@example.com")
	sent.is(t, 200, "")
	close(stop.leave)
	got := <-woken
	got.is(t, 504, "delivery-unknown")
	if len(r.box.List()) != 1 || r.used("late@example.com") != 1 || !strings.Contains(got.text, `"remaining":9`) || got.body["id"] != sent.body["id"] {
		t.Errorf("%d mails, %d charged, answered %s", len(r.box.List()), r.used("late@example.com"), got.text)
	}
	r.once("click", "late@example.com").again(t, sent)
	code := sixDigits.FindString(r.arrived("late@example.com").Text)
	if r.try("late@example.com", code).status != 200 || book.codes.Load() != 1 {
		t.Errorf("the code of the mail is wrong, or %d are taken back", book.codes.Load())
	}
}

// The answer of one that gives way has no id where it cannot see the other's: its own is of
// no mail.
func TestOnceGivesWayToOneUnseen(t *testing.T) {
	r := newRig(t, setup{policy: "day=10/24h"})
	stop := frozen{r.limiter.Tiers("apart", throttle.DefaultPolicy()), make(chan struct{}), make(chan struct{})}
	late := r.anotherAs(func(o *api.Options) {
		o.Live.Rules = onlyMailbox(t, stop)
		o.SendDeadline = time.Minute
	})
	woken := make(chan reply, 1)
	go func() { woken <- late.once("click", "unseen@example.com") }()
	<-stop.entered
	r.now.Add(lease)
	r.once("click", "unseen@example.com").is(t, 200, "")
	close(stop.leave)
	got := <-woken
	got.is(t, 504, "delivery-unknown")
	if id, there := got.body["id"]; there || len(r.box.List()) != 1 {
		t.Errorf("%d mails, and the id %v", len(r.box.List()), id)
	}
}

// A key of which the mark alone is known costs nothing, and has one answer when somebody can
// say how the mailbox stands; also where the charge is gone.
func TestOnceMarked(t *testing.T) {
	for charged, name := range []string{"its charge is gone", "its charge is there"} {
		t.Run(name, func(t *testing.T) {
			r, store := newFailing(t, setup{policy: "day=10/24h"})
			dying := r.anotherWith(api.Repeats{Answers: forgetful{r.repeats.Answers}, HandedOver: r.repeats.HandedOver})
			id := dying.once("click", "marked@example.com").body["id"]
			r.now.Add(lease)
			if charged == 0 {
				must(r.limiter.Reset(t.Context(), "marked@example.com"))(t)
			}
			store.rest.Store(true)
			r.once("click", "marked@example.com").is(t, 503, "store-unavailable")
			store.rest.Store(false)
			first := r.once("click", "marked@example.com")
			first.is(t, 504, "delivery-unknown")
			if charged == 1 && first.body["id"] != id {
				t.Errorf("the mail %v is answered as %s", id, first.text)
			}
			r.once("click", "marked@example.com").again(t, first)
			if len(r.box.List()) != 1 || r.used("marked@example.com") != charged {
				t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("marked@example.com"))
			}
		})
	}
}
