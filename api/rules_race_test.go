package api_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Many at once, for places that do not reach for all: nobody is over a limit, every
// place that was not used is free again, and every yes was mailed.
func TestRulesUnderARace(t *testing.T) {
	const senders, each = 64, 4
	limits := map[string]int{"visitors": 5, "callers": 90, "all": 70}
	counted := map[string]throttle.Algorithm{
		"visitors": must(throttle.NewSlidingWindow(tier("hour", limits["visitors"], 3_600_000), 60))(t),
		"callers":  must(throttle.NewTokenBucket(tier("hour", 1, 3_600_000), limits["callers"]))(t),
		"all":      must(throttle.NewFixedWindow(tier("hour", limits["all"], 3_600_000)))(t),
	}
	limiters := map[string]throttle.Limiter{}
	r := newRig(t, setup{policy: "day=2/24h", rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		for name, m := range counted {
			limiters[name] = r.counted(name, m)
		}
		return []rules.Rule{
			{Name: "visitors", By: rules.ByClientIP, Limiter: limiters["visitors"]},
			{Name: "callers", By: rules.ByAPIKey, Limiter: limiters["callers"]},
			{Name: "all", By: rules.ByAll, Limiter: limiters["all"]},
		}
	}})
	transport := &http.Transport{MaxIdleConnsPerHost: senders}
	defer transport.CloseIdleConnections()
	visitor := func(i int) string { return fmt.Sprintf("203.0.113.%d", i%20) }
	var mu sync.Mutex
	byVisitor, byMailbox, total := map[string]int{}, map[string]int{}, 0
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for n := range each {
				at, email := visitor(i+n), fmt.Sprintf("race%d@example.com", (i+n)%50)
				status, err := post(transport, r.url+"/send-code", `{"email":"`+email+`","client_ip":"`+at+`"}`)
				if err != nil || status != 200 && status != 429 {
					t.Errorf("%d, %v", status, err)
				}
				if status == 200 {
					mu.Lock()
					byVisitor[at]++
					byMailbox[email]++
					total++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	left := func(name, key string) int {
		return must(limiters[name].Peek(context.Background(), key))(t).Tiers[0].Remaining
	}
	if total == 0 || total > limits["all"] || left("all", "all") != limits["all"]-total || left("callers", "shop") != limits["callers"]-total {
		t.Errorf("%d were sent; all has %d left, callers %d", total, left("all", "all"), left("callers", "shop"))
	}
	for i := range 20 {
		if at := visitor(i); left("visitors", at) != limits["visitors"]-byVisitor[at] {
			t.Errorf("visitor %s sent %d and has %d left", at, byVisitor[at], left("visitors", at))
		}
	}
	for i := range 50 {
		email := fmt.Sprintf("race%d@example.com", i)
		if r.used(email) != byMailbox[email] || byMailbox[email] > 2 {
			t.Errorf("%s was answered %d times and has %d on record", email, byMailbox[email], r.used(email))
		}
	}
	if n := len(r.box.List()); n != total {
		t.Errorf("%d mails, and %d yeses", n, total)
	}
}
