package web_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Every second is shown once, none of them is zero, and the end is not early.
func countsToTheLastMillisecond(t *testing.T, v *tab, p *player) {
	p.body = with(`wait-ms="60000"`)
	v.visit(p)
	v.mustShow("Next in 1:00.")
	v.pass(999)
	v.mustShow("Next in 1:00.")
	v.pass(1)
	v.mustShow("Next in 0:59.")
	v.pass(58_999.9)
	v.mustShow("Next in 0:01.")
	v.pass(0.1)
	v.mustShow("Next in 0:01.") // the wait is over; what a clock may be off by is not
	v.pass(101)
	v.mustShow("")
	var want []string
	for seconds := 59; seconds > 0; seconds-- {
		want = append(want, fmt.Sprintf("tick %d", seconds))
	}
	want = slices.Concat([]string{"tick 60", "start 60000"}, want, []string{"end"})
	if got := v.look().Events; !slices.Equal(got, want) {
		t.Errorf("events\n%v, want\n%v", got, want)
	}
}

// A second is told once, however often the server says that it is the one; but it is told of
// each wait, and only when it is known.
func tellsASecondOnce(t *testing.T, v *tab, p *player) {
	tells := func(when string, want ...string) {
		t.Helper()
		if got := v.look().Events; !slices.Equal(got, want) {
			t.Errorf("%s: it has told %q, want %q", when, got, want)
		}
	}
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(300)
	p.says(200, still(59_700, first))
	get[bool](v, `document.querySelector("mailgate-countdown").refresh().then(() => true)`)
	v.update(sent(59_700, first, "a-token"))
	v.mustShow("One email a minute. Next in 1:00.")
	tells("asked and told again", "tick 60", "start minute 60000")
	v.element(`mailbox = "another"`)
	v.update(sent(60_000, second, "b-token"))
	tells("another mailbox", "tick 60", "start minute 60000", "tick 60", "start minute 60000")
	goOn := p.hesitates()
	p.says(200, still(59_900, first))
	v.do(chromedp.Reload())
	v.mustShow("One email a minute. Next in 1:00.")
	tells("before the answer")
	goOn()
	v.until("the server's word counts", func() bool { return v.look().count("start") == 1 })
	tells("after a reload", "tick 60", "start minute 59900")
}

// A clock that is an hour off, either way and before or after the reload, changes
// nothing.
func aWrongClock(t *testing.T, v *tab, p *player) {
	for _, off := range []int{-3_600_000, 3_600_000} {
		v.visit(p)
		v.run("localStorage.clear()")
		v.setClock(off)
		v.visit(p)
		v.update(sent(60_000, first, "a-token"))
		v.shows("One email a minute. Next in 1:00.")
		v.pass(30_000)
		v.shows("One email a minute. Next in 0:30.")
		v.setClock(off)
		p.says(200, still(30_000, first))
		v.do(chromedp.Reload())
		v.shows("One email a minute. Next in 0:30.")
		v.pass(29_999)
		v.mustShow("One email a minute. Next in 0:01.")
		v.pass(102)
		v.mustShow("")
	}
}

func aClockThatIsSet(t *testing.T, v *tab, p *player) {
	v.visit(p)
	for i, token := range []string{"", "a-token"} {
		for _, off := range []int{-3_600_000, 3_600_000} {
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
	}
}

// A machine that sleeps may stop the clock that nobody can set. The other tells, and the
// server says where things are.
func sleep(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(10_000)
	v.setClock(40_000)
	p.says(200, still(9000, first))
	v.pass(1000)
	v.shows("One email a minute. Next in 0:09.")
	v.pass(9101)
	v.mustShow("")
	s := v.look()
	if s.count("end") != 1 || len(s.Said) != 3 { // the start, the wait that turned out shorter, the end
		t.Errorf("%d ends, said %q", s.count("end"), s.Said)
	}
}

// A tab that nobody sees may be frozen. It asks when it is seen again, and not before.
func aFrozenTab(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	p.says(200, still(7000, first))
	call(v, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateFrozen})
	call(v, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateActive})
	if !get[bool](v, "document.hidden") || p.asks() != 0 {
		t.Errorf("hidden: %t, asked for %q", get[bool](v, "document.hidden"), p.questions())
	}
	v.run(`Object.defineProperty(document, "hidden", { value: false })`) // no headless tab is ever seen
	v.comesBack()
	v.shows("One email a minute. Next in 0:07.")
}

// What is known goes on; the question is repeated, less and less often, and at once when
// the network is back.
func networkLoss(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.offline(true)
	v.comesBack()
	for i, wait := range []float64{1000, 2000, 4000} {
		v.until("it learns that nobody answers", func() bool { return v.failures() == i+1 })
		v.pass(wait - 50)
		if n := v.look().Fetches; n != i+1 {
			t.Fatalf("asked %d times within %v ms", n, wait)
		}
		v.pass(1050)
	}
	v.until("it learns that nobody answers", func() bool { return v.failures() == 4 })
	v.mustShow("One email a minute. Next in 0:50.")
	v.forgive()
	p.says(200, still(40_000, first))
	v.offline(false)
	v.shows("One email a minute. Next in 0:40.")
	if s := v.look(); s.count("start") != 2 || s.count("end") != 0 || p.asks() != 1 {
		t.Errorf("asked for %q, events %v", p.questions(), s.Events)
	}
}

// A long wait is asked for every five minutes: no two clocks go at the same pace.
func aLongWait(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(3_600_000, first, "a-token"))
	v.pass(299_900)
	if p.asks() != 0 {
		t.Errorf("asked for %q", p.questions())
	}
	p.says(200, still(3_298_000, first))
	v.pass(1100)
	v.shows("One email a minute. Next in 54:58.")
	v.pass(299_900)
	if p.asks() != 1 {
		t.Errorf("asked for %q", p.questions())
	}
	v.pass(1100)
	v.until("it asks again", func() bool { return p.asks() == 2 })
}

// A wait is known from the moment its answer arrives, so an answer that was long on its
// way says too much; what was known of the same moment still holds.
func aSlowAnswer(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	goOn := p.hesitates()
	p.says(200, still(60_000, first))
	v.run(`window.asked = document.querySelector("mailgate-countdown").refresh()`)
	v.until("it asks", func() bool { return p.asks() == 1 })
	v.pass(20_000) // a page may be frozen meanwhile
	goOn()
	get[bool](v, "asked.then(() => true)")
	v.mustShow("One email a minute. Next in 0:40.")
}

// A server whose clock was set back says yes at the same moment, which is further away than
// any answer is long on its way. A page that hands in an old answer once more knows nothing.
func aServersClockThatIsSetBack(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(40_000)
	v.mustShow("One email a minute. Next in 0:20.")
	p.says(200, still(50_000, first))
	v.comesBack()
	v.shows("One email a minute. Next in 0:50.")
	v.pass(10_000)
	v.update(sent(60_000, first, "a-token"))
	v.mustShow("One email a minute. Next in 0:40.")
	p.says(200, still(41_000, first))
	v.comesBack()
	v.shows("One email a minute. Next in 0:41.")
}

// What one tab has learned of the server's clock the other asks as well.
func aServersClockThatIsSetBackForTwo(t *testing.T, v *tab, p *player) {
	other := v.waitsBesideAnother(p, 20_000)
	p.says(200, still(50_000, first))
	v.comesBack()
	v.shows("One email a minute. Next in 0:50.")
	other.shows("One email a minute. Next in 0:50.")
	v.isHeardBy(other)
	other.isHeardBy(v)
	if asked := p.questions(); asked != "a-token a-token a-token" {
		t.Errorf("asked for %q", asked)
	}
}

// Nobody waits longer than five seconds for an answer that does not come.
func noAnswer(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(20_000)
	defer p.hesitates()()
	v.do(chromedp.Reload())
	v.until("it asks", func() bool { return p.asks() == 1 })
	v.pass(4999)
	if s := v.look(); s.count("start") != 0 || !s.Held {
		t.Errorf("while nobody knows: %+v", s)
	}
	v.pass(2)
	v.until("it goes on with what it knows", func() bool { return v.look().count("start") == 1 })
	v.mustShow("One email a minute. Next in 0:35.")
}

// Without the time machine: never early, and late only as a busy machine is.
func onRealClocks(t *testing.T, v *tab) {
	p := newPlayer(t, beside)
	v.visit(p)
	took := get[float64](v, `new Promise((resolve) => {
		const began = performance.now();
		document.addEventListener("mailgate-end", () => resolve(performance.now() - began));
		document.querySelector("mailgate-countdown").update({ wait_ms: 1200 });
	})`)
	if took < 1200 || took > 10_000 {
		t.Errorf("1200 ms took %v", took)
	}
}
