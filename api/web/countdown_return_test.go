package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

func afterAReload(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.mustShow("")
	v.update(sent(60_000, first, "a-token"))
	v.pass(20_000)
	v.shows("One email a minute. Next in 0:40.")
	p.says(200, still(39_500, first))
	v.do(chromedp.Reload())
	v.until("the server's word counts", func() bool { return v.look().count("start") == 1 })
	v.mustShow("One email a minute. Next in 0:40.")
	if remaining := v.look().Remaining; remaining < 39_500 || remaining > 39_600 {
		t.Errorf("%v ms remain of 39500", remaining)
	}
	if asked := p.questions(); asked != "a-token" {
		t.Errorf("asked for %q", asked)
	}
	p.says(200, still(0, first)) // an operator has reset the mailbox
	v.do(chromedp.Reload())
	v.shows("")
	v.do(chromedp.Reload())
	v.mustShow("")
	if p.asks() != 2 {
		t.Errorf("a wait that is over was asked for again: %s", p.questions())
	}
}

// Before the server has answered nobody knows, so the button is held even if the wait
// seems to be over.
func afterAReloadTheButtonWaits(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.setClock(3_600_000)
	goOn := p.hesitates()
	p.says(200, still(60_000, first))
	v.do(chromedp.Reload())
	v.until("it asks", func() bool { return p.asks() == 1 })
	v.pass(500)
	if s := v.look(); !s.Held || s.Text != "" || len(s.Events) > 0 || len(s.Said) > 0 {
		t.Errorf("while nobody knows: %+v", s)
	}
	goOn()
	v.shows("One email a minute. Next in 1:00.")
}

// A send in one tab starts the countdown in the other, and neither keeps the other busy.
func twoTabs(t *testing.T, v *tab, p *player) {
	v.visit(p)
	other := v.another(timeMachine)
	other.visit(p)
	other.mustShow("")
	p.says(200, still(59_900, first))
	v.update(sent(60_000, first, "a-token"))
	other.shows("One email a minute. Next in 1:00.")
	other.until("the server's word counts", func() bool { return other.look().count("start") == 1 })
	if asked := p.questions(); asked != "a-token" {
		t.Errorf("asked for %q", asked)
	}
	other.pass(30_000)
	other.shows("One email a minute. Next in 0:30.")
	v.mustShow("One email a minute. Next in 1:00.")

	p.says(200, still(59_000, second)) // the next send
	other.update(sent(60_000, second, "b-token"))
	v.shows("One email a minute. Next in 0:59.")

	other.pass(60_100) // is over in one, and the other asks before it believes it
	other.mustShow("")
	v.until("it asks", func() bool { return strings.HasSuffix(p.questions(), "b-token b-token") })
	v.mustShow("One email a minute. Next in 0:59.")
	if p.asks() != 3 {
		t.Errorf("asked for %q", p.questions())
	}
	twoTabsTwoMailboxes(t, v, other, p)
}

// What is waited for by one mailbox is nothing to another, in whichever tab; it is there
// again with its mailbox, and tells nobody whose it is.
func twoTabsTwoMailboxes(t *testing.T, v, other *tab, p *player) {
	v.run("localStorage.clear()")
	v.element(`mailbox = "alice@example.com"`)
	v.mustShow("")
	v.update(strings.Replace(sent(72_000_000, first, "alices"), `"minute"`, `"day"`, 1))
	other.element(`mailbox = "bob@example.com"`)
	other.update(sent(60_000, second, "bobs"))
	asked := p.asks()
	for _, tabs := range [][2]*tab{{v, other}, {other, v}} {
		tabs[0].isHeardBy(tabs[1])
		get[bool](tabs[1], "fetch('/countdown/a-look').then(() => true)") // after whatever it asks on hearing that
	}
	v.mustShow("Ten emails in a day: limit reached. Next in 20:00:00.")
	other.mustShow("One email a minute. Next in 1:00.")
	if p.asks() != asked+2 {
		t.Errorf("asked for %q", p.questions())
	}
	p.says(200, strings.Replace(still(71_990_000, first), "minute", "day", 1))
	other.run(`Object.assign(document.querySelector("mailgate-countdown"), {mailbox: "alice@example.com"})`)
	other.shows("Ten emails in a day: limit reached. Next in 19:59:50.")
	p.says(200, still(50_000, second))
	other.element(`mailbox = "bob@example.com"`)
	other.shows("One email a minute. Next in 0:50.")
	if kept := get[string](v, "JSON.stringify(localStorage)"); strings.Contains(kept, "@") {
		t.Errorf("it remembers %s", kept)
	}
}

// Chromium does not keep a page that takes over 3 s to come to rest, so there is a second try.
func theBackButtonPageKept(t *testing.T, v *tab, p *player) {
	for tries := 1; ; tries++ {
		v.visit(p)
		v.update(sent(60_000, first, "a-token"))
		v.do(chromedp.Navigate(p.URL + "/elsewhere"))
		p.says(200, still(13_000, first))
		v.back()
		v.shows("One email a minute. Next in 0:13.")
		if s := v.look(); p.asks() != tries || !s.Restored && tries == 2 {
			t.Fatalf("page kept by the browser: %t, asked for %q", s.Restored, p.questions())
		} else if s.Restored {
			return
		}
		v.run("localStorage.clear()")
	}
}

// Each sign that time may have passed unseen is enough to ask; that a page has just been
// loaded is none.
func everySignOfLostTime(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	for i, sign := range []string{"Event('online')", "PageTransitionEvent('pageshow', { persisted: true })", "Event('visibilitychange')"} {
		p.says(200, still(50_000-i*1000, first))
		v.run("dispatchEvent(new " + sign + ")")
		v.shows(fmt.Sprintf("One email a minute. Next in 0:%d.", 50-i))
	}
	v.run("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: false }))")
	get[bool](v, "fetch('/countdown/the-end').then(() => true)")
	if asked := p.questions(); asked != "a-token a-token a-token the-end" {
		t.Errorf("asked for %q", asked)
	}
}

func theBackButtonPageLoaded(t *testing.T, v *tab, p *player) {
	p.cache = "no-store"
	p.body = with(`src="/countdown/old-token" wait-ms="60000"`) // as it was when it was loaded
	p.says(200, still(60_000, first))
	v.visit(p)
	v.shows("Next in 1:00.")
	v.update(sent(60_000, first, "a-token"))
	v.do(chromedp.Navigate(p.URL + "/elsewhere"))
	p.says(200, still(13_000, first))
	v.back()
	v.shows("Next in 0:13.")
	if s := v.look(); s.Restored || s.count("start") != 1 {
		t.Errorf("page kept by the browser: %t, events %v", s.Restored, s.Events)
	}
}

func networkLossAfterAReload(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(20_000)
	p.says(500, "{}")
	v.do(chromedp.Reload())
	v.until("it goes on with what it knows", func() bool { return v.look().count("start") == 1 })
	v.mustShow("One email a minute. Next in 0:40.")
	p.says(200, still(37_000, first))
	v.pass(2000)
	v.shows("One email a minute. Next in 0:37.")
	v.forgive()
	v.pass(37_101)
	v.mustShow("")
	if s := v.look(); s.count("start") != 1 || s.count("end") != 1 {
		t.Errorf("events %v", s.Events)
	}
}

// What the server has said since is remembered as well. Where it cannot be asked after a
// reload the button is let go by the visitor's clock, and the question is repeated until
// there is an answer.
func networkLossAfterAWaitThatGrew(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	p.says(200, still(90_000, second)) // another mail was sent from elsewhere
	v.comesBack()
	v.shows("One email a minute. Next in 1:30.")
	v.pass(80_000)
	p.says(503, "{}")
	v.do(chromedp.Reload())
	v.until("it goes on with what it knows", func() bool { return v.look().count("start") == 1 })
	v.mustShow("One email a minute. Next in 0:10.")
	v.pass(10_201)
	v.mustShow("")
	p.says(200, still(5000, second))
	v.comesBack()
	v.shows("One email a minute. Next in 0:05.")
	v.forgive()
	v.pass(5101)
	v.mustShow("")
	if s := v.look(); s.count("start") != 2 || s.count("end") != 2 {
		t.Errorf("events %v", s.Events)
	}
	asked := p.asks()
	v.do(chromedp.Reload())
	v.mustShow("")
	if p.asks() != asked {
		t.Errorf("a wait that is over was asked for again: %s", p.questions())
	}
}

// A token that is not valid any more is asked for once.
func anExpiredToken(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(20_000)
	p.says(404, "{}")
	v.do(chromedp.Reload())
	v.until("it goes on with what it knows", func() bool { return v.look().count("start") == 1 })
	v.forgive()
	for range 3 {
		v.comesBack()
		v.pass(5000)
	}
	v.mustShow("One email a minute. Next in 0:25.")
	if s := v.look(); p.asks() != 1 || len(s.Said) != 1 {
		t.Errorf("asked for %q, said %q", p.questions(), s.Said)
	}
}

// Without a token the visitor's clock tells the other tab, of a longer wait as well.
func twoTabsWithoutAToken(t *testing.T, v *tab, p *player) {
	v.visit(p)
	other := v.another(timeMachine)
	other.visit(p)
	v.update(sent(20_000, first, ""))
	other.shows("One email a minute. Next in 0:20.")
	other.update(sent(60_000, second, ""))
	v.shows("One email a minute. Next in 1:00.")
}

// waitsBesideAnother has two tabs wait for one send, of which both have the token.
func (tb *tab) waitsBesideAnother(p *player, ms int) (other *tab) {
	tb.t.Helper()
	tb.visit(p)
	other = tb.another(timeMachine)
	p.says(200, still(ms, first))
	other.visit(p)
	tb.update(sent(ms, first, "a-token"))
	other.until("the server's word counts", func() bool { return other.look().count("start") == 1 })
	return other
}

// What one tab can ask no more is nothing new to another, which knows the same wait by the
// clock that nobody can set.
func aTokenThatAnotherTabLost(t *testing.T, v *tab, p *player) {
	other := v.waitsBesideAnother(p, 60_000)
	p.says(404, "{}")
	v.setClock(3_600_000)
	other.setClock(3_600_000)
	v.comesBack()
	v.until("it has lost the token", func() bool { return get[bool](v, `JSON.parse(localStorage["mailgate-countdown:resend"]).src === ""`) })
	v.isHeardBy(other)
	other.mustShow("One email a minute. Next in 1:00.")
	v.forgive()
	p.says(200, still(59_000, first)) // it was a mistake of the server's, and the other still can ask
	other.comesBack()
	other.shows("One email a minute. Next in 0:59.")
	v.shows("One email a minute. Next in 0:59.") // as it has the token again
}

func noStorage(t *testing.T, v *tab, p *player) {
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `if (location.protocol === "http:") Object.defineProperty(window, "localStorage", { get() { throw new DOMException("no", "SecurityError") } })`,
	})
	v.visit(p)
	v.update(sent(60_000, first, ""))
	v.pass(20_000)
	v.run(`document.body.prepend(document.querySelector("mailgate-countdown"))`) // the page is rearranged
	v.mustShow("One email a minute. Next in 0:40.")
	v.pass(40_101)
	v.mustShow("")
	if s := v.look(); s.count("start") != 1 || s.count("end") != 1 || len(s.Said) != 2 {
		t.Errorf("%+v", s)
	}
}

// Without the server the visitor's clock is all there is to go by. Set back, it makes
// nobody wait longer than ever was said; set on, it is corrected with the first answer,
// and be it that the wait had seemed to be over.
func networkLossAndAWrongClock(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(20_000)
	v.setClock(-3_600_000)
	p.says(500, "{}")
	v.do(chromedp.Reload())
	v.until("it goes on with what it knows", func() bool { return v.look().count("start") == 1 })
	v.mustShow("One email a minute. Next in 1:00.")

	v.setClock(3_605_000)
	v.do(chromedp.Reload())
	v.until("it goes on with what it knows", func() bool { return v.look().count("start") == 1 })
	v.mustShow("One email a minute. Next in 0:35.")
	p.says(200, still(39_000, first))
	v.pass(2000)
	v.shows("One email a minute. Next in 0:39.")

	for _, off := range []int{3_600_000, 0} {
		p.says(429, "{}")
		v.setClock(off)
		v.do(chromedp.Reload())
		v.until("it lets the button go", func() bool { return !v.look().Held })
		if s := v.look(); s.Waiting || s.Text != "" || len(s.Events) > 0 || len(s.Said) > 0 {
			t.Errorf("where nobody has said that it is over: %+v", s)
		}
		v.do(chromedp.Click(chromedp.CSS("#resend")))
		p.says(200, still(39_000, first))
		v.pass(2000)
		v.shows("One email a minute. Next in 0:39.")
		if s := v.look(); s.Clicks != 1 || s.count("start") != 1 {
			t.Errorf("%+v", s)
		}
		v.forgive()
		v.pass(39_001) // and is nearly over for the next
	}
}

// Where a wait ends, another that was remembered meanwhile stays.
func aNewerWaitIsKept(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(5000, first, "a-token"))
	v.run(`localStorage["mailgate-countdown:resend"] = localStorage["mailgate-countdown:resend"].replace("a-token", "b-token")`)
	v.pass(5101)
	v.mustShow("")
	p.says(200, still(42_000, second))
	v.comesBack()
	v.shows("One email a minute. Next in 0:42.")
	if asked := p.questions(); asked != "b-token" {
		t.Errorf("asked for %q", asked)
	}
}

// A wait that was over while the visitor was away, and of which nobody can be asked, is nothing
// to a page that comes with another.
func aWaitThatEndedMeanwhile(t *testing.T, v *tab, p *player) {
	p.body = with(`wait-ms="60000"`)
	v.visit(p)
	v.shows("Next in 1:00.")
	v.pass(20_000)
	v.do(chromedp.Reload())
	v.shows("Next in 0:40.")
	v.setClock(86_400_000)
	v.visit(p)
	v.mustShow("Next in 1:00.")
	v.setClock(86_400_000)
	p.body = beside
	v.visit(p)
	v.mustShow("")
	if s := v.look(); get[bool](v, `"mailgate-countdown:resend" in localStorage`) || len(s.Events) > 0 {
		t.Errorf("it is remembered, or there were events: %v", s.Events)
	}
}
