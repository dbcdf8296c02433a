package web_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// Each second is shown and told once, none is zero, and the end is not early.
func TestCountdown_EverySecond_IsToldOnceAndNeverEarly(t *testing.T) {
	p, v := newSite(t, "")
	p.shows(v, with(`wait-ms="60000"`))
	v.mustShow("Next in 1:00.")
	v.pass(999)
	v.mustShow("Next in 1:00.")
	v.pass(1)
	v.mustShow("Next in 0:59.")
	v.pass(59_000)
	v.mustShow("Next in 0:01.") // the wait is over, but the clock may be off a little
	v.pass(101)
	v.mustShow("")
	want := []string{"tick 60", "start 60000"}
	for seconds := 59; seconds > 0; seconds-- {
		want = append(want, fmt.Sprintf("tick %d", seconds))
	}
	if got := v.look().Events; !slices.Equal(got, append(want, "end")) {
		t.Errorf("events\n%v, want\n%v", got, want)
	}
}

// A second is told again for another mailbox, and not because the server confirms it.
func TestCountdown_ConfirmedWait_IsNotToldAgain(t *testing.T) {
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

// A clock that is an hour off, set before or during the wait, changes nothing; the server is
// asked where it can be.
func TestCountdown_WrongClock_ChangesNothing(t *testing.T) {
	p, v := newSite(t, beside)
	for _, off := range []int{-3_600_000, 3_600_000} {
		for i, token := range []string{"", "a-token"} {
			v.update(sent(60_000, first, token))
			v.pass(20_000)
			p.says(200, still(39_000, first))
			v.setClock(off)
			asked := p.asks()
			v.pass(1000)
			v.until("it asks, if it can", func() bool { return p.asks() == asked+i })
			v.shows("One email a minute. Next in 0:39.")
			v.pass(38_999)
			v.mustShow("One email a minute. Next in 0:01.")
			v.pass(201)
			v.mustShow("")
		}
		v.update(sent(60_000, first, "a-token"))
		v.pass(30_000)
		v.setClock(off)
		p.says(200, still(30_000, first))
		v.reload()
		v.shows("One email a minute. Next in 0:30.")
		v.pass(30_101)
		v.mustShow("")
	}
}

// After sleep, in a tab that was frozen, and at each other sign of lost time the server is asked.
func TestCountdown_LostTime_AsksTheServer(t *testing.T) {
	p, v := newSite(t, beside)
	v.update(sent(60_000, first, "a-token"))
	v.pass(5000)
	v.setClock(20_000)
	p.says(200, still(34_000, first))
	v.pass(1000)
	v.shows("One email a minute. Next in 0:34.")
	for i, sign := range []string{"Event('online')", "PageTransitionEvent('pageshow', { persisted: true })", "Event('visibilitychange')"} {
		p.says(200, still(30_000-i*1000, first))
		v.run("dispatchEvent(new " + sign + ")")
		v.shows(fmt.Sprintf("One email a minute. Next in 0:%d.", 30-i))
	}
	v.run("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: false }))")
	call(v, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateFrozen})
	call(v, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateActive})
	get[bool](v, "fetch('/countdown/last').then(() => document.hidden)")
	if got := p.tokens(); got != "a-token a-token a-token a-token last" {
		t.Errorf("asked for %q", got)
	}
	p.says(200, still(7000, first))
	v.run(`Object.defineProperty(document, "hidden", { value: false })`) // no headless tab is ever seen
	v.isSeen()
	v.shows("One email a minute. Next in 0:07.")
	v.pass(7101)
	if s := v.look(); s.Text != "" || s.count("end") != 1 {
		t.Errorf("%+v", s)
	}
}

// Without the network it counts on, and asks less and less often until the network is back.
func TestCountdown_NetworkLoss_CountsOn(t *testing.T) {
	p, v := newSite(t, beside)
	v.update(sent(60_000, first, "a-token"))
	v.offline(true)
	v.isSeen()
	for i, wait := range []float64{1000, 2000, 4000} {
		v.complains("/countdown/")
		v.pass(wait - 50)
		if n := v.look().Fetches; n != i+1 {
			t.Fatalf("asked %d times within %v ms", n, wait)
		}
		v.pass(1050)
	}
	v.complains("/countdown/")
	v.mustShow("One email a minute. Next in 0:50.")
	p.says(200, still(40_000, first))
	v.offline(false)
	v.shows("One email a minute. Next in 0:40.")
	if s := v.look(); s.count("start") != 2 || s.count("end") != 0 || p.asks() != 1 {
		t.Errorf("asked for %q, events %v", p.tokens(), s.Events)
	}
}

// A long wait is asked for every five minutes, as no two clocks run alike.
func TestCountdown_LongWait_AsksEveryFiveMinutes(t *testing.T) {
	p, v := newSite(t, beside)
	v.update(sent(3_600_000, first, "a-token"))
	v.pass(299_900)
	if p.asks() != 0 {
		t.Errorf("asked for %q", p.tokens())
	}
	p.says(200, still(3_298_000, first))
	v.pass(1100)
	v.shows("One email a minute. Next in 54:58.")
	v.pass(299_900)
	if p.asks() != 1 {
		t.Errorf("asked for %q", p.tokens())
	}
	v.pass(1100)
	v.until("it asks again", func() bool { return p.asks() == 2 })
}

// A slow answer does not lengthen a wait that is known, and none is waited for longer than five
// seconds.
func TestCountdown_SlowServer_LengthensNothing(t *testing.T) {
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

// After the clock of the server was set back the same moment is further away. An old answer that
// is given to update again says nothing new. A second tab asks as well.
func TestCountdown_ServerClockSetBack_WaitsLonger(t *testing.T) {
	p, v := newSite(t, beside)
	other := v.another(timeMachine)
	p.says(200, still(60_000, first))
	other.visit(p.URL)
	v.update(sent(60_000, first, "a-token"))
	other.started()
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

// On real clocks it is never early.
func TestCountdown_RealClocks_IsNeverEarly(t *testing.T) {
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
