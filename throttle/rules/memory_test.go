package rules_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// If one rule is remembered to refuse, the others cost Redis nothing: only the mailbox rule is asked, whose
// verdict is in every decision.
func TestTake_RefusedFromMemory_OthersAreNotAsked(t *testing.T) {
	t.Parallel()
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { _ = client.Close() })
	memory := cluster.NewMemory(1 << 20)
	rule := func(name string, by rules.By, tiers string) rules.Rule {
		limiter := memory.Limiter(must.Get(cluster.New(client, "test:"+name, throttletest.Policy(t, tiers)))(t))
		return rules.Rule{Name: name, By: by, Limiter: limiter}
	}
	set := must.Get(rules.New(rules.Options{Remote: true}, rule("mailbox", rules.ByMailbox, "minute=1/60s"),
		rule("site", rules.ByAll, "hour=2/1h"), rule("visitor", rules.ByClientIP, "hour=9/1h")))(t)

	refused := func(mailbox, by string, questions int) rules.Decision {
		t.Helper()
		var d rules.Decision
		servertest.Eventually(t, "a refusal from memory", func() bool {
			asked := proxy.Sent("evalsha")
			d = take(t, set, to(mailbox))
			return proxy.Sent("evalsha")-asked == questions
		})
		if d.Allowed || d.Rule != by || len(d.Mailbox.Tiers) != 1 {
			t.Errorf("%s: %+v", mailbox, d)
		}
		return d
	}
	take(t, set, to("a@example.com"))
	refused("a@example.com", "mailbox", 0)
	take(t, set, to("b@example.com"))
	if d := refused("c@example.com", "site", 1); !d.Mailbox.Allowed {
		t.Errorf("%+v", d.Mailbox)
	}
	if d := peek(t, set, to("c@example.com")); d.Allowed || d.Rule != "site" {
		t.Errorf("%+v", d)
	}
}
