package rules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// named lists the rules of charges.
func named(all []rules.Charge) (names string) {
	for _, c := range all {
		names += c.Rule + " "
	}
	return strings.TrimSpace(names)
}

// After an error the charges are what is to be released: what was charged and, of exact
// rules, what may have been. Released, nothing is on record but what a counter lost.
func TestTake_Failure_ChargesWhatIsToBeReleased(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		for _, tt := range []struct {
			name            string
			mailbox, second hook
			kind            string // of the second rule
			want            string
			left            int // of 5 of the second rule
		}{
			{"a peek fails", nil, fails("peek"), "exact", "", 5},
			{"the mailbox fails", fails("take"), nil, "none", "mailbox", 5},
			{"the mailbox's answer is lost", lost("take"), nil, "exact", "mailbox exact", 5},
			{"the mailbox fails, a counter is charged", fails("take"), nil, "quota", "mailbox quota", 5},
			{"the mailbox fails, a shadow is charged", fails("take"), nil, "shadow", "mailbox shadow", 5},
			{"the mailbox fails before a queue", fails("take"), nil, "queue", "mailbox", 5},
			{"an exact rule's answer is lost", nil, lost("take"), "exact", "mailbox exact", 5},
			{"an exact rule fails", nil, fails("take"), "exact", "mailbox exact", 5},
			{"a counter fails", nil, fails("take"), "quota", "mailbox", 5},
			{"a counter's answer is lost", nil, lost("take"), "quota", "mailbox", 4},
			{"a queue fails", nil, fails("take"), "queue", "mailbox", 5},
		} {
			r := newRig(t)
			mailbox, kinds := r.mailbox("hour=5/1h"), map[string]rules.Rule{
				"exact": r.exact("exact", rules.ByAll, "hour=5/1h"), "shadow": r.exact("shadow", rules.ByAll, "hour=5/1h"),
				"quota": r.quota("quota", 5, 5), "queue": r.queue("queue", rules.ByAll, 1, 4)}
			second := kinds[tt.kind]
			second.Shadow, second.Resends = tt.kind == "shadow", nil
			fault(&mailbox.Limiter, tt.mailbox)
			all := []rules.Rule{mailbox}
			if tt.kind != "none" {
				fault(&second.Limiter, tt.second)
				all = append(all, second)
			}
			set := newSet(t, remote, all...)
			d, err := set.Take(ctx, to("a@b.example"), throttle.NewID())
			if !errors.Is(err, errFailed) || !strings.HasPrefix(err.Error(), "rule ") || d.Allowed || named(d.Charges) != tt.want {
				t.Errorf("%s: %v, %+v", tt.name, err, d)
			}
			if failed, err := set.Release(ctx, d.Charges); err != nil || len(failed) != 0 || left(t, mailbox, "a@b.example") != 5 {
				t.Errorf("%s: released %v, %v; the mailbox has %d of 5 left", tt.name, failed, err, left(t, mailbox, "a@b.example"))
			}
			if tt.kind != "none" && left(t, second, "all") != tt.left {
				t.Errorf("%s: %d of 5 left, want %d", tt.name, left(t, second, "all"), tt.left)
			}
		}
	})
}

// What was charged, or may have been, for a send that is refused after all is given back,
// also where the caller has gone; what cannot be given back remains to be released.
func TestTake_RaceLost_GivesBack(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		for _, tt := range []struct {
			name            string
			mailbox, shadow hook
			want            string
		}{
			{"all is well", nil, nil, ""},
			{"a shadow's answer is lost", nil, lost("take"), ""},
			{"a release fails", fails("release"), nil, "mailbox"},
			{"two releases fail", fails("release"), fails("release"), "mailbox trial"},
		} {
			r := newRig(t)
			mailbox, shadow, all, counter := r.mailbox("hour=5/1h"), r.exact("trial", rules.ByDomain, "hour=1/1h"), r.queue("all", rules.ByAll, 1, 0), r.quota("count", 5, 5)
			shadow.Shadow = true
			fault(&mailbox.Limiter, tt.mailbox)
			fault(&shadow.Limiter, tt.shadow)
			contest(&all.Limiter)
			set := newSet(t, remote, shadow, mailbox, all, counter)
			d := take(t, set, to("a@b.example"))
			if d.Allowed || d.Rule != "all" || named(d.Charges) != tt.want || left(t, counter, "all") != 5 || tt.want == "" && d.Mailbox.Sent != 0 {
				t.Errorf("%s: %+v", tt.name, d)
			}
			if failed, _ := set.Release(ctx, d.Charges); named(failed) != tt.want {
				t.Errorf("%s: released again, %q are left", tt.name, named(failed))
			}
			if a, b := left(t, mailbox, "a@b.example"), left(t, shadow, "b.example"); tt.want == "" && (a != 5 || b != 1) {
				t.Errorf("%s: %d and %d left", tt.name, a, b)
			}
		}
	})
}

// A caller that goes while a late rule answers loses no quota.
func TestTake_CallerGone_GivesBack(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		r := newRig(t)
		mailbox, all := r.mailbox("hour=5/1h"), r.queue("all", rules.ByAll, 1, 0)
		gone, leave := context.WithCancel(ctx)
		late := all.Limiter
		fault(&all.Limiter, func(call, key string, made bool) (err error) {
			switch {
			case call == "take" && !made:
				_, err = late.Take(ctx, key, throttle.NewID())
			case call == "take":
				leave()
			}
			return err
		})
		d, err := newSet(t, remote, mailbox, all).Take(gone, to("a@b.example"), throttle.NewID())
		if err != nil || d.Allowed || len(d.Charges) != 0 || left(t, mailbox, "a@b.example") != 5 {
			t.Errorf("%v, %+v", err, d)
		}
	})
}

// A shadow rule that fails is reported, also where another rule refuses, unless it was charged
// after all.
func TestTake_FailingShadow_IsReported(t *testing.T) {
	for _, quota := range []bool{false, true} {
		for _, tt := range []struct {
			calls []string
			want  []int // failures reported by an admission, and by a refusal
		}{{[]string{"peek", "take"}, []int{1, 1}}, {[]string{"peek"}, []int{0, 1}}, {[]string{"take"}, []int{1, 0}}} {
			r := newRig(t)
			shadow := r.exact("trial", rules.ByAll, "hour=5/1h")
			shadow.Shadow = true
			fault(&shadow.Limiter, fails(tt.calls...))
			all := []rules.Rule{r.mailbox("hour=1/1h"), shadow}
			if quota {
				all = append(all, r.quota("quota", 9, 8))
			}
			set := newSet(t, false, all...)
			for i, want := range tt.want {
				d := take(t, set, to("a@b.example"))
				if d.Allowed != (i == 0) || len(d.Shadow) != want || want == 1 && (d.Shadow[0].Rule != "trial" || !errors.Is(d.Shadow[0].Err, errFailed)) {
					t.Errorf("%v fail, quota %v, send %d: %v, %+v", tt.calls, quota, i, d.Allowed, d.Shadow)
				}
			}
		}
	}
}

// Release may be repeated for exact rules. A counter's failure is told and not returned, and
// a rule that is gone has nothing to give back.
func TestRelease_Failures_ReturnExactRules(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		r := newRig(t)
		mailbox, counter, queue := r.mailbox("hour=5/1h"), r.quota("count", 5, 5), r.queue("pace", rules.ByAll, 1, 4)
		own, count := fault(&mailbox.Limiter, fails("release")), fault(&counter.Limiter, fails("release"))
		set := newSet(t, remote, mailbox, counter, queue)
		d := take(t, set, to("a@b.example"))
		failed, err := set.Release(ctx, append(d.Charges, rules.Charge{Rule: "gone", Key: "all"}))
		if named(failed) != "mailbox" || !errors.Is(err, errFailed) || !strings.Contains(err.Error(), "rule mailbox: ") || !strings.Contains(err.Error(), "rule count: ") {
			t.Errorf("%q, %v", named(failed), err)
		}
		own.hook, count.hook = nil, nil
		for range 2 {
			if failed, err = set.Release(ctx, failed); err != nil || len(failed) != 0 {
				t.Errorf("again: %q, %v", named(failed), err)
			}
			failed = d.Charges[:1]
		}
		if got := fmt.Sprint(left(t, mailbox, "a@b.example"), left(t, counter, "all"), left(t, queue, "all")); got != "5 4 5" {
			t.Errorf("%s left, want 5 4 5", got)
		}
	})
}

// Reset forgets the mailbox in every rule that counts by it, and nothing else.
func TestReset_RuleFails_ForgetsInAllOthers(t *testing.T) {
	r := newRig(t)
	broken, caller, mailbox, other := r.exact("broken", rules.ByMailbox, "hour=5/1h"), r.exact("caller", rules.ByAPIKey, "day=5/24h"), r.mailbox("hour=5/1h"), r.quota("other", 5, 5)
	other.By = rules.ByMailbox
	fault(&broken.Limiter, fails("reset"))
	set, send := newSet(t, false, broken, caller, mailbox, other), to("a@b.example")
	send.Caller = send.Mailbox
	take(t, set, send)
	if n, err := set.Reset(ctx, send.Mailbox); n != 1 || !errors.Is(err, errFailed) || !strings.Contains(err.Error(), "rule broken") {
		t.Errorf("reset: %d, %v", n, err)
	}
	if got := fmt.Sprint(left(t, mailbox, send.Mailbox), left(t, other, send.Mailbox), left(t, caller, send.Mailbox), left(t, broken, send.Mailbox)); got != "5 5 4 4" {
		t.Errorf("%s left, want 5 5 4 4", got)
	}
}
