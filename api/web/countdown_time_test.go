package web_test

import (
	"slices"
	"testing"
)

// waitInTwoTabs opens a page in two tabs, which wait for 60 s by the same token.
func waitInTwoTabs(t *testing.T) (p *site, v, other *tab) {
	t.Helper()
	p, v = newSite(t, beside)
	other = v.another(timeMachine)
	p.says(200, still(60_000, first))
	other.visit(p.URL)
	v.update(sent(60_000, first, "a-token"))
	other.started()
	return p, v, other
}

// After the clock of the server was set back the same moment is further away. An old answer that
// is given to update again says nothing new. A second tab asks as well.
func TestCountdown_ServerClockSetBack_WaitsLonger(t *testing.T) {
	t.Parallel()
	p, v, other := waitInTwoTabs(t)
	v.pass(40_000)
	p.says(200, still(50_000, first))
	v.isSeen()
	v.shows("One email a minute. Next in 0:50.")
	v.isHeardBy(other)
	v.pass(10_000)
	v.update(sent(60_000, first, "a-token"))
	v.mustShow("One email a minute. Next in 0:40.")
	other.isSeen()
	other.shows("One email a minute. Next in 0:50.")
}

// A slow answer does not lengthen a wait that is known, and none is waited for longer than five
// seconds.
func TestCountdown_SlowServer_LengthensNothing(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	v.update(sent(60_000, first, "a-token"))
	goOn := p.hesitates()
	p.says(200, still(60_000, first))
	v.run(`window.asked = document.querySelector("mailgate-countdown").refresh()`)
	v.until("it asks", func() bool { return p.asks() == 1 })
	v.pass(4000)
	goOn()
	get[bool](v, "asked.then(() => true)")
	v.mustShow("One email a minute. Next in 0:56.")
	v.update(sent(60_000, second, "b-token"))
	defer p.hesitates()()
	v.reload()
	v.until("it asks", func() bool { return p.asks() == 2 })
	v.pass(4999)
	if s := v.look(); s.count("start") != 0 || !s.Held {
		t.Errorf("before the answer: %+v", s)
	}
	v.pass(2)
	v.started()
	v.mustShow("One email a minute. Next in 0:55.")
}

// A second is told again for another mailbox, and not because the server confirms it.
func TestCountdown_ConfirmedWait_IsNotToldAgain(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	tells := func(want ...string) {
		t.Helper()
		if got := v.look().Events; !slices.Equal(got, want) {
			t.Errorf("it has told %q, want %q", got, want)
		}
	}
	v.update(sent(60_000, first, "a-token"))
	v.pass(300)
	p.says(200, still(59_700, first))
	v.refreshed()
	v.update(sent(59_700, first, "a-token"))
	tells("tick 60", "start minute 60000")
	v.element(`mailbox = "another"`)
	v.update(sent(60_000, second, "b-token"))
	tells("tick 60", "start minute 60000", "tick 60", "start minute 60000")
	goOn := p.hesitates()
	v.reload()
	tells() // the server has not answered yet
	goOn()
	v.started()
	tells("tick 60", "start minute 59700")
}

// What was stored since stays when a wait ends, and a wait that ended while the visitor was away
// is nothing to the next page.
func TestCountdown_StoredWait_IsNewerOrOver(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	v.update(sent(5000, first, "a-token"))
	v.run(`localStorage["mailgate-countdown:resend"] = localStorage["mailgate-countdown:resend"].replace("a-token", "b-token")`)
	v.pass(5101)
	v.mustShow("")
	p.says(200, still(42_000, second))
	v.isSeen()
	v.shows("One email a minute. Next in 0:42.")
	v.element("reset()")
	for _, page := range []string{with(`wait-ms="60000"`), beside} {
		p.shows(v, with(`wait-ms="60000"`))
		v.setClock(86_400_000)
		p.shows(v, page)
		v.mustShow(map[bool]string{true: "Next in 1:00.", false: ""}[page != beside])
	}
	v.is(`"mailgate-countdown:resend" in localStorage`, "false")
}

// A token that has expired is asked for once. A tab that still has it is not misled by the other.
func TestCountdown_ExpiredToken_IsAskedForOnce(t *testing.T) {
	t.Parallel()
	p, v, other := waitInTwoTabs(t)
	p.says(404, "{}")
	v.isSeen()
	v.isTrue(`JSON.parse(localStorage["mailgate-countdown:resend"]).src === ""`)
	v.isHeardBy(other)
	other.setClock(3_600_000)
	other.mustShow("One email a minute. Next in 1:00.")
	asked := p.asks()
	v.isSeen()
	v.pass(5000)
	v.mustShow("One email a minute. Next in 0:55.")
	if p.asks() != asked {
		t.Errorf("asked for %q", p.tokens())
	}
	v.complains("404")
	p.says(200, still(50_000, first)) // the server was wrong
	other.isSeen()
	other.shows("One email a minute. Next in 0:50.")
	v.shows("One email a minute. Next in 0:50.")
}

// On real clocks it is never early.
func TestCountdown_RealClocks_IsNeverEarly(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, countdownRealClocksIsNeverEarly)
}

func countdownRealClocksIsNeverEarly(t *testing.T, newVisitor opener) {
	p, _ := newSite(t, beside)
	v := newVisitor(t)
	v.visit(p.URL)
	took := get[float64](v, `new Promise((resolve) => {
		const began = performance.now();
		document.addEventListener("mailgate-end", () => resolve(performance.now() - began));
		document.querySelector("mailgate-countdown").update({ wait_ms: 1200 });
	})`)
	if took < 1200 || took > 10_000 {
		t.Errorf("1200 ms took %v", took)
	}
}

// A listener may update or reset the countdown during its event.
func TestCountdown_Listener_MayUpdateOrReset(t *testing.T) {
	t.Parallel()
	_, v := newSite(t, beside)
	v.run(`document.addEventListener("mailgate-tick", ({ target }) => target.reset(), { once: true })`)
	v.update(sent(60_000, first, ""))
	v.mustShow("")
	if s := v.look(); s.count("start") != 0 || len(s.Said) > 0 {
		t.Errorf("after a reset: %v, said %q", s.Events, s.Said)
	}
	v.reload()
	v.run(`document.addEventListener("mailgate-tick", ({ target, detail }) => {
		if (detail.seconds === 30) target.update({ wait_ms: 20000, limit: "minute" });
		if (detail.seconds === 10) target.reset();
	})`)
	v.update(sent(60_000, first, ""))
	v.pass(35_000)
	v.mustShow("Next in 0:15.")
	v.pass(5000)
	v.mustShow("")
	if n := v.look().count("tick"); n != 31+11 {
		t.Errorf("%d ticks: %v", n, v.look().Events)
	}
}
