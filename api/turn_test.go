package api_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// A leaky bucket lets mails out at even distances, however they came.
func TestLeakyBucketKeepsItsPace(t *testing.T) {
	const sends, apart = 6, 40
	began := make(chan time.Time, 1)
	handed := make(chan time.Duration, sends)
	r := newRig(t, setup{
		options: func(o *api.Options) {
			o.Relay = fakeSender(func(context.Context, message.Message) error {
				start := <-began
				began <- start
				handed <- time.Since(start)
				return nil
			})
		},
		rules: func(r *rig, _ *rules.Rule) []rules.Rule {
			pace := must(throttle.NewLeakyBucket(tier("pace", 1000/apart, 1000), sends-1))(t)
			return []rules.Rule{{Name: "pace", By: rules.ByAll, Limiter: r.counted("pace", pace)}}
		},
	})
	began <- time.Now()
	turns := make(chan int, sends)
	var wg sync.WaitGroup
	for i := range sends {
		wg.Go(func() {
			got := r.send(fmt.Sprintf("pace%d@example.com", i))
			if got.status != 200 {
				t.Errorf("answered %d %s", got.status, got.text)
				return
			}
			line := journal.about(t, got.header.Get("X-Request-Id"))[0]
			delay, _ := line["delay_ms"].(float64)
			turns <- int(delay)
		})
	}
	wg.Wait()
	close(turns)
	told := map[int]bool{}
	for turn := range turns {
		told[turn] = true
	}
	for i := range sends {
		if !told[i*apart] {
			t.Errorf("nobody's turn was told as %d ms: %v", i*apart, told)
		}
		if after := <-handed; after < time.Duration(i*apart)*time.Millisecond {
			t.Errorf("mail %d left after %v, before its turn", i, after)
		}
	}
	got := r.send("pace-full@example.com")
	got.is(t, 429, "quota-exceeded")
	if got.body["limit"] != "pace" || got.body["wait_ms"] != float64(apart) {
		t.Errorf("answered %s", got.text)
	}
}

// paced is a rig whose sends leave one by one, so far apart in milliseconds, by the rule that
// is returned with it. The first one has left.
func paced(t *testing.T, apart int64, deadline time.Duration) (*rig, throttle.Limiter) {
	t.Helper()
	var pace throttle.Limiter
	r := newRig(t, setup{
		options: func(o *api.Options) { o.SendDeadline = deadline },
		rules: func(r *rig, _ *rules.Rule) []rules.Rule {
			pace = r.counted("pace", must(throttle.NewLeakyBucket(tier("pace", 1, apart), 5))(t))
			return []rules.Rule{{Name: "pace", By: rules.ByAll, Limiter: pace}}
		},
	})
	r.send("first@example.com").is(t, 200, "")
	return r, pace
}

// waiting sends one mail more, and returns when it has its turn.
func waiting(t *testing.T, r *rig, pace throttle.Limiter, email string) <-chan reply {
	t.Helper()
	answer := make(chan reply, 1)
	go func() { answer <- r.send(email) }()
	servertest.Eventually(t, "the send has a turn", func() bool { return room(t, pace) == 4 })
	return answer
}

func room(t *testing.T, pace throttle.Limiter) int {
	t.Helper()
	return must(pace.Peek(context.Background(), "all"))(t).Tiers[0].Remaining
}

// A send whose turn cannot come in time is given back at once.
func TestTurnsThatDoNotCome(t *testing.T) {
	r, pace := paced(t, 20_000, 15*time.Second)
	got := r.send("late@example.com")
	got.is(t, 503, "busy")
	if got.header.Get("Retry-After") != "20" || r.used("late@example.com") != 0 || room(t, pace) != 5 || len(r.box.List()) != 1 {
		t.Errorf("Retry-After %s, %d on record, room for %d, %d mails", got.header.Get("Retry-After"), r.used("late@example.com"), room(t, pace), len(r.box.List()))
	}
}

// A send that waits for its turn when the server shuts down leaves all the same.
func TestTurnsInAShutdown(t *testing.T) {
	r, pace := paced(t, 1000, time.Minute)
	answer := waiting(t, r, pace, "waiting@example.com")
	r.shutdown()
	got := <-answer
	got.is(t, 200, "")
	if r.used("waiting@example.com") != 1 || len(r.box.List()) != 2 {
		t.Errorf("%d on record, %d mails", r.used("waiting@example.com"), len(r.box.List()))
	}
}

// One whose turn comes after the end of the shutdown is let go at once: another server can
// take it on.
func TestTurnsBeyondAShutdown(t *testing.T) {
	t.Run("beyond its end", func(t *testing.T) { beyondAShutdown(t, 40_000) })
	t.Run("too near to it to hand over a mail", func(t *testing.T) { beyondAShutdown(t, 8_000) })
}

func beyondAShutdown(t *testing.T, turn int64) {
	r, pace := paced(t, turn, time.Minute)
	answer := waiting(t, r, pace, "beyond@example.com")
	r.shutdown()
	got := <-answer
	got.is(t, 503, "busy")
	if r.used("beyond@example.com") != 0 || room(t, pace) != 5 {
		t.Errorf("%d on record, room for %d", r.used("beyond@example.com"), room(t, pace))
	}
}
