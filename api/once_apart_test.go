package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
)

// Where the other servers could not be asked about a key the answer says so, and stays the same.
func TestOnceAlone(t *testing.T) {
	r := newRig(t, setup{})
	r.keys.alone = true
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

// apart is a server that decides about keys by its own records, with the same limits and relay.
func (r *rig) apart() *rig {
	keys := r.newKeys(r.newStore(""))
	keys.alone = true
	return r.anotherAs(func(o *api.Options) { o.Requests = r.newRequests(keys) })
}

// Two mails of one key, by two servers of which one could not ask the other, are two
// admissions.
func TestOnceCountedTwice(t *testing.T) {
	r := newRig(t, setup{})
	first := r.apart().once("click", "twice@example.com")
	first.is(t, 200, "")
	r.once("click", "twice@example.com").is(t, 429, "quota-exceeded")
	r.now.Add(60_000)
	second := r.once("click", "twice@example.com")
	second.is(t, 200, "")
	if first.body["id"] == second.body["id"] || r.used("twice@example.com") != 2 {
		t.Errorf("the mails %v and %v are %d charges", first.body["id"], second.body["id"], r.used("twice@example.com"))
	}
}

// A cut limiter belongs to a server that is cut off from the others: they are told later of
// what it gives back.
type cut struct {
	throttle.Historian
	tell []func()
}

func (c *cut) Release(ctx context.Context, key string, a throttle.Admission) (bool, error) {
	c.tell = append(c.tell, func() { c.Historian.Release(context.WithoutCancel(ctx), key, a) })
	return true, nil
}

// What one server gives back, and another hears of late, is not the charge of the mail that
// the other has sent under the same key meanwhile.
func TestOnceGivenBackLate(t *testing.T) {
	r := newRig(t, setup{policy: "minute=2/60s"})
	far := &cut{Historian: r.limiter}
	apart := r.anotherAs(func(o *api.Options) {
		o.Live.Rules = onlyMailbox(t, far)
		o.Relay = fakeSender(func(context.Context, message.Message) error {
			return &relay.Error{Outcome: relay.Unavailable, Err: errors.New("the relay is down")}
		})
	})
	apart.once("click", "late@example.com").is(t, 503, "relay-unavailable")
	if r.used("late@example.com") != 1 {
		t.Fatal("the charge is not to be given back yet")
	}
	r.once("click", "late@example.com").is(t, 200, "")
	for _, tell := range far.tell {
		tell()
	}
	if len(r.box.List()) != 1 || r.used("late@example.com") != 1 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("late@example.com"))
	}
}

// A server that is cut off between its charge and the hand-over sends no mail, since the
// others would not know of it; what it charged is given back.
func TestOnceCutOffBeforeTheHandOver(t *testing.T) {
	r := newRig(t, setup{})
	r.keys.stop = func(_ context.Context, to byte) { r.keys.alone = to == handedOver }
	r.once("click", "cut@example.com").is(t, 503, "store-unavailable")
	if len(r.box.List()) != 0 || r.used("cut@example.com") != 0 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("cut@example.com"))
	}
	r.keys.stop, r.keys.alone = nil, false
	r.once("click", "cut@example.com").is(t, 200, "")
}

// A key of which only the hand-over is known costs nothing, and has one answer as soon as the
// rules can be asked; also where the charge is gone.
func TestOnceHandedOver(t *testing.T) {
	for charged, name := range []string{"its charge is gone", "its charge is there"} {
		t.Run(name, func(t *testing.T) {
			r, store := newFailing(t, setup{policy: "day=10/24h"})
			id := r.unanswering().once("click", "marked@example.com").body["id"]
			r.now.Add(lease)
			if charged == 0 {
				must(r.limiter.Reset(t.Context(), "marked@example.com"))(t)
			}
			store.rest.Store(true)
			r.once("click", "marked@example.com").is(t, 503, "store-unavailable")
			store.rest.Store(false)
			first := r.once("click", "marked@example.com")
			first.is(t, 504, "delivery-unknown")
			if first.body["id"] != id {
				t.Errorf("the mail %v is answered as %s", id, first.text)
			}
			r.once("click", "marked@example.com").again(t, first)
			if len(r.box.List()) != 1 || r.used("marked@example.com") != charged {
				t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("marked@example.com"))
			}
		})
	}
}
