package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// Each second is shown and announced once, none is zero, and the end is not early.
func TestCountdown_EverySecond_IsAnnouncedOnceAndNeverEarly(t *testing.T) {
	t.Parallel()
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

// A clock that is an hour off changes nothing, also where the server cannot be asked.
func TestCountdown_WrongClock_ChangesNothing(t *testing.T) {
	t.Parallel()
	_, v := newSite(t, beside)
	for _, off := range []int{-3_600_000, 3_600_000} {
		v.update(sent(60_000, first, ""))
		v.pass(20_000)
		v.setClock(off)
		v.pass(1000)
		v.shows("One email a minute. Next in 0:39.")
		v.pass(38_999)
		v.mustShow("One email a minute. Next in 0:01.")
		v.pass(201)
		v.mustShow("")
	}
}

// After sleep, in a tab that was frozen, and at each other sign of lost time the server is asked;
// in a long wait also every five minutes, as no two clocks run alike.
func TestCountdown_LostTime_AsksTheServer(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	v.update(sent(600_000, first, "a-token"))
	v.pass(5000)
	v.setClock(20_000)
	p.says(200, still(574_000, first))
	v.pass(1000)
	v.shows("One email a minute. Next in 9:34.")
	for i, sign := range []string{"Event('online')", "PageTransitionEvent('pageshow', { persisted: true })", "Event('visibilitychange')"} {
		p.says(200, still(570_000-i*1000, first))
		v.run("dispatchEvent(new " + sign + ")")
		v.shows(fmt.Sprintf("One email a minute. Next in 9:%d.", 30-i))
	}
	call(v, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateFrozen})
	call(v, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateActive})
	get[bool](v, "fetch('/countdown/last').then(() => document.hidden)")
	if got := p.tokens(); got != "a-token a-token a-token a-token last" {
		t.Errorf("asked for %q", got)
	}
	v.run(`Object.defineProperty(document, "hidden", { value: false })`) // no headless tab is ever seen
	v.pass(299_000)
	p.says(200, still(200_000, first))
	v.pass(2000)
	v.shows("One email a minute. Next in 3:20.")
}

// Without the network it counts on, and asks less and less often until the network is back.
func TestCountdown_NetworkLoss_CountsOn(t *testing.T) {
	t.Parallel()
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

// After a reload the button is held until the server has answered, and then counts on.
func TestCountdown_Reload_CountsOn(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	v.update(sent(60_000, first, "a-token"))
	v.setClock(3_600_000) // by which the wait would be over
	goOn := p.hesitates()
	p.says(200, still(39_500, first))
	v.reload()
	v.until("it asks", func() bool { return p.asks() == 1 })
	v.pass(500)
	if s := v.look(); !s.Held || s.Text != "" || len(s.Events)+len(s.Said) > 0 {
		t.Errorf("before the answer: %+v", s)
	}
	goOn()
	v.shows("One email a minute. Next in 0:40.")
	p.says(200, still(0, first)) // an operator has reset the mailbox
	v.reload()
	v.shows("")
	v.reload()
	v.mustShow("")
	if p.tokens() != "a-token a-token" {
		t.Errorf("asked for %q", p.tokens())
	}
}

// A send in one tab starts the countdown in the other. The end in one is checked by the other.
func TestCountdown_TwoTabs_ShareTheWait(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	other := v.another(timeMachine)
	other.visit(p.URL)
	v.update(sent(20_000, first, "")) // without a token the visitor's clock tells the other tab
	other.shows("One email a minute. Next in 0:20.")
	p.says(200, still(59_000, second))
	other.update(sent(60_000, second, "a-token"))
	v.shows("One email a minute. Next in 0:59.")
	other.pass(60_100)
	other.mustShow("")
	v.until("it asks", func() bool { return p.tokens() == "a-token a-token" })
	v.mustShow("One email a minute. Next in 0:59.")
}

// Each mailbox has a wait of its own, which is there again with the mailbox. No address is stored.
func TestCountdown_TwoMailboxes_WaitApart(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	other := v.another(timeMachine)
	other.visit(p.URL)
	v.element(`mailbox = "alice@example.com"`)
	v.update(strings.Replace(sent(72_000_000, first, "alices"), `"minute"`, `"day"`, 1))
	other.element(`mailbox = "bob@example.com"`)
	other.update(sent(60_000, second, "bobs"))
	for _, tabs := range [][2]*tab{{v, other}, {other, v}} {
		tabs[0].isHeardBy(tabs[1])
	}
	v.mustShow("Ten emails in a day: limit reached. Next in 20:00:00.")
	other.mustShow("One email a minute. Next in 1:00.")
	if p.asks() != 0 {
		t.Errorf("asked for %q", p.tokens())
	}
	p.says(200, strings.Replace(still(71_990_000, first), "minute", "day", 1))
	other.element(`mailbox = "alice@example.com"`)
	other.shows("Ten emails in a day: limit reached. Next in 19:59:50.")
	p.says(200, still(50_000, second))
	other.element(`mailbox = "bob@example.com"`)
	other.shows("One email a minute. Next in 0:50.")
	if kept := get[string](v, "JSON.stringify(localStorage)"); strings.Contains(kept, "@") {
		t.Errorf("it stores %s", kept)
	}
}

// Back to a page that the browser may have kept, and to one that it has to load again.
func TestCountdown_BackButton_CountsOn(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	for _, cache := range []string{"", "no-store"} {
		p.cache = cache
		v.visit(p.URL)
		v.update(sent(60_000, first, "a-token"))
		p.says(200, still(13_000, first))
		v.visit(p.URL + "/elsewhere")
		v.back(`document.querySelector("mailgate-countdown")?.shadowRoot`)
		v.isTrue(`look().text.endsWith("Next in 0:13.")`)
		v.element("reset()")
	}
}

// Where the server cannot be asked after a reload the visitor's clock decides, never for longer
// than was ever said, and the question is repeated until there is an answer.
func TestCountdown_NetworkLossAfterReload_TrustsTheClock(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	v.update(sent(60_000, first, "a-token"))
	v.pass(20_000)
	p.says(503, "{}")
	v.reload()
	v.started()
	v.mustShow("One email a minute. Next in 0:40.")
	v.setClock(-3_600_000)
	v.reload()
	v.started()
	v.mustShow("One email a minute. Next in 1:00.")
	v.setClock(3_605_000)
	v.reload()
	v.started()
	v.mustShow("One email a minute. Next in 0:35.")
	v.setClock(3_600_000)
	v.reload()
	v.isTrue("!look().held")
	if s := v.look(); s.Waiting || len(s.Events)+len(s.Said) > 0 {
		t.Errorf("before an answer: %+v", s)
	}
	v.click("#resend")
	p.says(200, still(39_000, first))
	v.pass(2000)
	v.shows("One email a minute. Next in 0:39.")
	v.pass(39_101)
	if s := v.look(); s.Clicks != 1 || s.count("start") != 1 || s.count("end") != 1 {
		t.Errorf("%+v", s)
	}
	asked := p.asks()
	v.reload()
	v.mustShow("")
	if p.asks() != asked {
		t.Error("a wait that is over was asked for again")
	}
}
