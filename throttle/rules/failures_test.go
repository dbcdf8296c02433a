package rules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// named lists the rules of charges.
func named(all []rules.Charge) (names string) {
	for _, c := range all {
		names += c.Rule + " "
	}
	return strings.TrimSpace(names)
}

// After an error the charges are what is to be released: what was charged and, of exact
// rules, what may have been. Released, nothing is on record but what a counter lost. Rules that are not remote are
// asked one after the other, until one fails.
func TestTake_Failure_ChargesWhatIsToBeReleased(t *testing.T) {
	for _, tt := range []struct {
		mailbox, kind, second string // where the mailbox rule fails, and the second rule
		charges               string
		left                  int // of 5 of the second rule
	}{
		{"", "queue", "peek", "", 5},               // a queue is looked at before
		{"taken", "exact", "", "mailbox exact", 5}, // the answer is lost
		{"take", "quota", "", "mailbox quota", 5},
		{"take", "shadow", "", "mailbox shadow", 5},
		{"take", "queue", "", "mailbox", 5}, // the queue is not asked
		{"", "exact", "take", "mailbox exact", 5},
		{"", "exact", "taken", "mailbox exact", 5},
		{"", "quota", "take", "mailbox", 5},
		{"", "quota", "taken", "mailbox", 4},
		{"", "queue", "take", "mailbox", 5},
	} {
		for _, remote := range both {
			r := newRig(t)
			mailbox, second := r.mailbox("hour=5/1h"), r.exact(tt.kind, rules.ByAll, "hour=5/1h")
			switch tt.kind {
			case "quota":
				second = r.quota("quota", 5, 5)
			case "queue":
				second = r.queue("queue", rules.ByAll, 1, 4)
			}
			second.Shadow, second.Resends = tt.kind == "shadow", nil
			fault(&mailbox.Limiter, tt.mailbox)
			fault(&second.Limiter, tt.second)
			want := tt.charges
			if !remote && tt.mailbox != "" {
				want = "mailbox"
			}
			set := r.set(remote, mailbox, second)
			d, err := set.Take(ctx, to("a@b.example"), throttle.NewID())
			if !errors.Is(err, throttletest.ErrFault) || !strings.HasPrefix(err.Error(), "rule ") || d.Allowed || named(d.Charges) != want {
				t.Errorf("%+v: %v, %+v", tt, err, d)
			}
			failed, err := set.Release(ctx, d.Charges)
			if a, b := r.left(mailbox, "a@b.example"), r.left(second, "all"); err != nil || len(failed) != 0 || a != 5 || b != tt.left {
				t.Errorf("%+v: released %v, %v; %d and %d of 5 left", tt, failed, err, a, b)
			}
		}
	}
}

// What was charged, or may have been, for a send that is refused after all is refunded, and
// what cannot be is still to be released. The refusal stays one where the caller has gone, the
// quota is free again before the answer, or a rule fails when it is asked again.
func TestTake_RaceLost_GivesBack(t *testing.T) {
	for _, tt := range []struct {
		mailbox, shadow, charges string
		sent                     int
	}{{}, {"", "taken", "", 0}, {"release", "", "mailbox", 0}, {"release", "release", "trial mailbox", 0}} {
		for _, remote := range both {
			r := newRig(t)
			mailbox, shadow, counter, all := r.mailbox("hour=5/1h"), r.exact("trial", rules.ByDomain, "hour=1/1h"), r.quota("count", 5, 5), r.queue("all", rules.ByAll, 1, 0)
			shadow.Shadow = true
			fault(&mailbox.Limiter, tt.mailbox)
			fault(&shadow.Limiter, tt.shadow)
			contest(&all.Limiter, true)
			gone, leave := context.WithCancel(ctx)
			count := fault(&counter.Limiter)
			count.On(func(_ context.Context, event, _ string) error {
				if event == "release" {
					leave()
					count.Fail("peek")
				}
				return nil
			})
			set := r.set(remote, shadow, mailbox, all, counter)
			d, err := set.Take(gone, to("a@b.example"), throttle.NewID())
			if err != nil || d.Allowed || d.Rule != "all" || len(d.Refusals) != 1 || named(d.Charges) != tt.charges || d.Mailbox.Sent != tt.sent {
				t.Errorf("%+v: %v, %+v", tt, err, d)
			}
			if failed, _ := set.Release(ctx, d.Charges); named(failed) != tt.charges {
				t.Errorf("%+v: released again, %q are left", tt, named(failed))
			}
			a, b, c := r.left(mailbox, "a@b.example"), r.left(shadow, "b.example"), r.left(counter, "all")
			if c != 5 || tt.charges == "" && (a != 5 || b != 1) {
				t.Errorf("%+v: %d, %d and %d left", tt, a, b, c)
			}
		}
	}
}

// A shadow rule that fails is reported, also where another rule refuses, unless it was charged
// after all.
func TestTake_FailingShadow_IsReported(t *testing.T) {
	for _, tt := range []struct {
		events string
		want   []int // failures reported by an admission, and by a refusal
	}{{"peek take", []int{1, 1}}, {"peek", []int{0, 1}}, {"take", []int{1, 0}}} {
		r := newRig(t)
		shadow := r.exact("trial", rules.ByAll, "hour=5/1h")
		shadow.Shadow = true
		fault(&shadow.Limiter, strings.Fields(tt.events)...)
		set := r.set(false, r.mailbox("hour=1/1h"), shadow, r.quota("quota", 9, 8))
		for i, want := range tt.want {
			d := take(t, set, to("a@b.example"))
			if d.Allowed != (i == 0) || len(d.Shadow) != want || want == 1 && !errors.Is(d.Shadow[0].Err, throttletest.ErrFault) {
				t.Errorf("%s fail, send %d: %v, %+v", tt.events, i, d.Allowed, d.Shadow)
			}
		}
	}
}

// Release may be repeated for exact rules. A counter's failure is told and not returned, and
// a rule that is gone has nothing to refund.
func TestRelease_Failures_ReturnsExactRules(t *testing.T) {
	for _, remote := range both {
		r := newRig(t)
		mailbox, counter, queue := r.mailbox("hour=5/1h"), r.quota("count", 5, 5), r.queue("pace", rules.ByAll, 1, 4)
		own := fault(&mailbox.Limiter, "release")
		fault(&counter.Limiter, "release")
		set := r.set(remote, mailbox, counter, queue)
		d := take(t, set, to("a@b.example"))
		failed, err := set.Release(ctx, append(d.Charges, rules.Charge{Rule: "gone", Key: "all"}))
		if named(failed) != "mailbox" || !errors.Is(err, throttletest.ErrFault) || !strings.Contains(err.Error(), "rule mailbox: ") || !strings.Contains(err.Error(), "rule count: ") {
			t.Errorf("%q, %v", named(failed), err)
		}
		own.Fail()
		for range 2 {
			again, err := set.Release(ctx, failed)
			if got := fmt.Sprint(len(again), err, r.left(mailbox, "a@b.example"), r.left(counter, "all"), r.left(queue, "all")); got != "0 <nil> 5 4 5" {
				t.Errorf("again: %s", got)
			}
		}
	}
}

// Reset forgets the mailbox in every rule that counts by it, and nothing else.
func TestReset_RuleFails_ForgetsInAllOthers(t *testing.T) {
	r, closed := newRig(t), newRig(t)
	caller, mailbox, other := r.exact("caller", rules.ByAPIKey, "day=5/24h"), r.mailbox("hour=5/1h"), r.quota("other", 5, 5)
	other.By = rules.ByMailbox
	set, send := r.set(false, closed.exact("broken", rules.ByMailbox, "hour=5/1h"), caller, mailbox, other), to("a@b.example")
	send.Caller = send.Mailbox
	take(t, set, send)
	must.Get(mailbox.Limiter.Take(ctx, send.Mailbox))(t)
	must.OK(t, closed.store.Close())
	if n, err := set.Reset(ctx, send.Mailbox); n != 2 || !errors.Is(err, throttle.ErrUnavailable) || !strings.Contains(err.Error(), "rule broken") {
		t.Errorf("reset: %d, %v", n, err)
	}
	if got := fmt.Sprint(r.left(mailbox, send.Mailbox), r.left(other, send.Mailbox), r.left(caller, send.Mailbox)); got != "5 5 4" {
		t.Errorf("%s left, want 5 5 4", got)
	}
}

// A panic in a limiter is the caller's, also where rules are asked at once: a door answers it and the process lives.
func TestTake_LimiterPanics_CallerRecovers(t *testing.T) {
	for _, remote := range both {
		for _, event := range []string{"peek", "take"} {
			r := newRig(t)
			mailbox, other := r.mailbox("hour=5/1h"), r.exact("other", rules.ByAll, "hour=5/1h")
			fault(&mailbox.Limiter).On(func(_ context.Context, now, _ string) error {
				if now == event {
					panic("of a limiter")
				}
				return nil
			})
			set := r.set(remote, mailbox, other)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", event)
					}
				}()
				_, _ = set.Take(ctx, to("a@b.example"), throttle.NewID())
				_, _ = set.Peek(ctx, to("a@b.example"))
			}()
		}
	}
}
