package bounce_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/suppression/bounce"
	"github.com/mailgate/mailgate/throttle"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// rig is a receiver with its list and proofs.
type rig struct {
	*bounce.Receiver
	t        *testing.T
	list     *suppression.List
	proofs   *proof.Proofs
	identity address.Identity
	now      atomic.Int64
	store    *cache.Store
}

func newRig(t *testing.T, withoutProof bool) *rig {
	r := &rig{t: t, identity: must.Get(address.NewIdentity(true))(t)}
	r.now.Store(at.UnixMilli())
	r.store = must.Get(cache.Open(cache.Options{Now: r.now.Load}))(t)
	r.list = must.Get(suppression.Open(t.Context(), suppression.Options{Table: r.store.Table("s"), Events: r.store.Table("e"), Now: r.now.Load, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(r.list.Close)
	r.proofs = must.Get(proof.New(nil, bytes.Repeat([]byte("s"), 32)))(t)
	r.Receiver = &bounce.Receiver{Suppressions: r.list, Proofs: r.proofs, Records: keyed.Local(r.store.Table("b")), WithoutProof: withoutProof, Now: r.now.Load}
	return r
}

func (r *rig) parse(to string) address.Address {
	return must.Get(address.Parse(to, r.identity))(r.t)
}

// sent is the text of an event about an email to an address.
func (r *rig) sent(to string) string {
	return `{"smtp-id":"<` + r.proofs.Make(throttle.NewID(), r.now.Load(), r.parse(to)) + `@acme.example>"}`
}

func (r *rig) apply(what, to string, kind bounce.Kind, text string, want bounce.Outcome, reasons ...suppression.Reason) {
	r.t.Helper()
	outcome, _, err := r.Apply(r.t.Context(), r.identity, "sendgrid", bounce.Event{Address: to, Kind: kind, Text: text})
	must.OK(r.t, err)
	var got []suppression.Reason
	if to != "" {
		for _, e := range must.Get(r.list.Find(r.parse(to)))(r.t) {
			got = append(got, e.Reason)
		}
	}
	if outcome != want || !reflect.DeepEqual(got, reasons) {
		r.t.Errorf("%s: %s, suppressed for %v; want %s, %v", what, outcome, got, want, reasons)
	}
}

func (r *rig) remove(to string) {
	must.OK(r.t, r.list.Remove(r.t.Context(), r.parse(to)))
}

// What would lock a victim out changes nothing.
func TestApply_Attacks_NothingSuppressed(t *testing.T) {
	r := newRig(t, false)
	other := must.Get(proof.New(nil, []byte("the secret of another sender")))(t)
	foreign := other.Make(throttle.NewID(), at.UnixMilli(), r.parse("victim@gmail.com"))
	r.apply("an email of another sender in the account", "victim@gmail.com", bounce.Hard, "<20180812@example.org>", bounce.Unproven)
	r.apply("a forged proof", "victim@gmail.com", bounce.Complaint, foreign, bounce.Unproven)
	r.apply("a leaked Message-ID of another mailbox", "victim@gmail.com", bounce.Complaint, r.sent("attacker@gmail.com"), bounce.Unproven)
	r.apply("that of a tag of the victim's", "victim@gmail.com", bounce.Hard, r.sent("victim+x@gmail.com"), bounce.Unproven)
	r.apply("one of several recipients", "", bounce.Complaint, r.sent("victim@gmail.com"), bounce.Unproven)
	old := r.sent("victim@gmail.com")
	r.now.Add(proof.Life)
	r.apply("an email of long ago", "victim@gmail.com", bounce.Complaint, old, bounce.Unproven)
	r.apply("a bounce of a tag", "victim+x@gmail.com", bounce.Hard, r.sent("victim+x@gmail.com"), bounce.Applied, suppression.HardBounce)
	if found := must.Get(r.list.Find(r.parse("victim@gmail.com")))(t); len(found) != 0 {
		t.Errorf("a bounce of a tag suppresses the mailbox: %v", found)
	}
}

// An event is applied once, also after an operator has removed what it did, and whatever else was reported.
func TestApply_RepeatedAndOutOfOrder_Once(t *testing.T) {
	r := newRig(t, false)
	text := r.sent("Alice@example.com")
	r.apply("soft", "alice@example.com", bounce.Soft, text, bounce.Counted)
	r.apply("a delivery", "alice@example.com", bounce.Other, text, bounce.Counted)
	r.apply("hard", "alice@example.com", bounce.Hard, text, bounce.Applied, suppression.HardBounce)
	r.apply("again", "alice@example.com", bounce.Hard, text+" in another envelope", bounce.Repeated, suppression.HardBounce)
	r.apply("a complaint about the same email", "alice@example.com", bounce.Complaint, text, bounce.Applied, suppression.Complaint, suppression.HardBounce)
	r.apply("soft, late", "alice@example.com", bounce.Soft, text, bounce.Counted, suppression.Complaint, suppression.HardBounce)
	r.remove("alice@example.com")
	for range 2 {
		r.apply("hard, replayed", "alice@example.com", bounce.Hard, text, bounce.Repeated)
		r.apply("complaint, replayed", "alice@example.com", bounce.Complaint, text, bounce.Repeated)
		r.now.Add(proof.Life - 1)
	}
	r.now.Add(10)
	r.apply("after its record", "alice@example.com", bounce.Complaint, text, bounce.Unproven)
	r.apply("another email", "alice@example.com", bounce.Hard, r.sent("alice@example.com"), bounce.Applied, suppression.HardBounce)
	r.now.Add(30 * 86_400_000)
	r.apply("thirty days later", "alice@example.com", bounce.Other, "", bounce.Counted)
}

// On the provider's word alone, still once, and never against a proof of another mailbox.
func TestApply_WithoutProof_IfTheOperatorSaysSo(t *testing.T) {
	r := newRig(t, true)
	r.apply("no proof", "alice@example.com", bounce.Hard, "event 1", bounce.Applied, suppression.HardBounce)
	r.remove("alice@example.com")
	r.apply("again", "alice@example.com", bounce.Hard, "event 1", bounce.Repeated)
	r.apply("another event", "alice@example.com", bounce.Hard, "event 2", bounce.Applied, suppression.HardBounce)
	r.apply("the proof of another", "bob@example.com", bounce.Complaint, r.sent("carol@example.com"), bounce.Unproven)
}

// While the list cannot be changed, an event is not lost: its repeat is applied.
func TestApply_StoreAway_Unavailable(t *testing.T) {
	r := newRig(t, false)
	text := r.sent("alice@example.com")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := r.Apply(ended, r.identity, "ses", bounce.Event{Address: "alice@example.com", Kind: bounce.Hard, Text: text}); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	r.apply("the repeat", "alice@example.com", bounce.Hard, text, bounce.Applied, suppression.HardBounce)
}

// What an operator removes is not brought back by a repeat of its event that another node has begun before.
func TestApply_RemovedMeanwhile_StaysRemoved(t *testing.T) {
	t.Parallel()
	redis := redistest.Alone(t)
	shared := func(t *testing.T) *bounce.Receiver {
		r := *newRig(t, true).Receiver
		client := must.Get(redisx.Open(redisx.Options{URL: redis.URL(), Timeout: 5 * time.Second, Prefix: "mailgate"}))(t)
		t.Cleanup(func() { _ = client.Close() })
		r.Suppressions = must.Get(suppression.Open(t.Context(), suppression.Options{Redis: client, Prefix: "mailgate", Now: r.Now, Log: slog.New(slog.DiscardHandler)}))(t)
		t.Cleanup(r.Suppressions.Close)
		r.Records = keyed.Redis(client, "mailgate:bounces")
		return &r
	}
	for name, nodes := range map[string][]*bounce.Receiver{
		"one machine": {newRig(t, true).Receiver},
		"Redis":       {shared(t), shared(t), shared(t)},
	} {
		t.Run(name, func(t *testing.T) {
			identity := must.Get(address.NewIdentity(true))(t)
			for round := range 300 {
				to := fmt.Sprintf("u%d@example.com", round)
				var all sync.WaitGroup
				var applied atomic.Int32
				for i := range 9 {
					n := nodes[i%len(nodes)]
					all.Go(func() {
						outcome, of, err := n.Apply(t.Context(), identity, "sendgrid", bounce.Event{Address: to, Kind: bounce.Complaint, Text: "an event"})
						if err == nil && outcome == bounce.Applied && applied.Add(1) == 1 {
							err = n.Suppressions.Remove(t.Context(), of)
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
			}
			for _, n := range nodes {
				if left, _, err := n.Suppressions.Page(t.Context(), ""); err != nil || len(left) > 0 {
					t.Fatalf("%d entries are back, %v", len(left), err)
				}
			}
		})
	}
}
