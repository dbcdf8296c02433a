package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	beside = `<form><input id="code"><button id="resend">Send again</button></form>
<mailgate-countdown for="resend"></mailgate-countdown>`
	around = `<mailgate-countdown><button id="resend" type="button">Send again</button></mailgate-countdown>`
)

// with is the page of beside with these attributes on the element.
func with(attributes string) string {
	return strings.Replace(beside, `for="resend"`, `for="resend" `+attributes, 1)
}

// A sight is how things stand in a page: what it shows, what it has said aloud and which
// events it sent.
type sight struct {
	Text                             string
	Held, Disabled, Waiting, Focused bool
	Remaining                        float64
	Events, Said                     []string
	Clicks, Submits                  int
	Restored                         bool
}

func (s sight) count(event string) (n int) {
	for _, e := range s.Events {
		if name, _, _ := strings.Cut(e, " "); name == event {
			n++
		}
	}
	return n
}

func (tb *tab) look() sight {
	tb.t.Helper()
	return get[sight](tb, "look()")
}

func (tb *tab) visit(p *player) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(p.URL))
}

func (tb *tab) pass(ms float64) { tb.t.Helper(); tb.run(fmt.Sprintf("time.pass(%f)", ms)) }
func (tb *tab) setClock(ms int) { tb.t.Helper(); tb.run(fmt.Sprintf("time.set(%d)", ms)) }
func (tb *tab) update(json string) {
	tb.t.Helper()
	tb.run("document.querySelector('mailgate-countdown').update(" + json + ")")
}
func (tb *tab) element(call string) {
	tb.t.Helper()
	tb.run("document.querySelector('mailgate-countdown')." + call)
}
func (tb *tab) comesBack() {
	tb.t.Helper()
	tb.run("document.dispatchEvent(new Event('visibilitychange'))")
}

// shows waits until the page shows a text: the answer to a question may be on its way.
func (tb *tab) shows(text string) {
	tb.t.Helper()
	var last sight
	defer func() {
		if tb.t.Failed() {
			tb.t.Logf("last seen: %+v", last)
		}
	}()
	tb.until(fmt.Sprintf("it shows %q", text), func() bool {
		last = tb.look()
		return last.Text == text && last.Held == (text != "")
	})
}

func (tb *tab) mustShow(text string) {
	tb.t.Helper()
	if got := tb.look(); got.Text != text || got.Held != (text != "") || got.Waiting != (text != "") {
		tb.t.Errorf("it does not show %q: %+v", text, got)
	}
}

// All tests share one browser; each has a visitor and a site of its own.
func TestCountdownInABrowser(t *testing.T) {
	browser := openBrowser(t)
	tests := []struct {
		name string
		test func(t *testing.T, v *tab, p *player)
	}{
		{"counts to the last millisecond", countsToTheLastMillisecond},
		{"says why in English", saysWhyInEnglish},
		{"says why in Chinese", saysWhyInChinese},
		{"says it in other words", saysItInOtherWords},
		{"after a reload it goes on", afterAReload},
		{"after a reload the button waits for the answer", afterAReloadTheButtonWaits},
		{"a clock that is wrong", aWrongClock},
		{"a clock that is set on the way", aClockThatIsSet},
		{"sleep", sleep},
		{"a frozen tab", aFrozenTab},
		{"two tabs", twoTabs},
		{"the back button, page kept", theBackButtonPageKept},
		{"the back button, page loaded", theBackButtonPageLoaded},
		{"network loss", networkLoss},
		{"network loss after a reload", networkLossAfterAReload},
		{"a token that has expired", anExpiredToken},
		{"another mailbox's refusal", anotherMailboxsRefusal},
		{"another rule's refusal", anotherRulesRefusal},
		{"an answer overtaken by a send", anAnswerOvertaken},
		{"answers that are none", answersThatAreNone},
		{"the button, by keyboard and mouse", theButton},
		{"a button inside", aButtonInside},
		{"a button that is replaced", aReplacedButton},
		{"what is said aloud", whatIsSaidAloud},
		{"a page that comes with the wait", aPageThatComesWithTheWait},
		{"attributes that change", attributesThatChange},
		{"properties set too early", propertiesSetTooEarly},
		{"no storage", noStorage},
		{"reset and removal", resetAndRemoval},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlayer(t, beside)
			tt.test(t, newVisitor(t, browser, timeMachine), p)
		})
	}
	t.Run("on real clocks", func(t *testing.T) { onRealClocks(t, newVisitor(t, browser)) })
	t.Run("where there are no elements", func(t *testing.T) { whereThereAreNoElements(t, newVisitor(t, browser)) })
	t.Run("size on the wire", func(t *testing.T) { sizeOnTheWire(t, newVisitor(t, browser)) })
}

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

func saysWhyInEnglish(t *testing.T, v *tab, p *player) {
	v.visit(p)
	for _, tt := range []struct{ answer, want, aloud string }{
		{sent(60_000, first, "one"), "One mail a minute. Next in 1:00.", "One mail a minute. Next in 1 minute."},
		{refused("mailbox", "hour", 750_000, second), "Five mails in an hour are used up. Next in 12:30.", "Five mails in an hour are used up. Next in 12 minutes, 30 seconds."},
		{refused("mailbox", "day", 86_399_001, first), "Ten mails in a day are used up. Next in 24:00:00.", "Ten mails in a day are used up. Next in 1 day."},
		{`{"wait_ms":2000,"limit":"short","limits":[{"name":"short","limit":1,"window_ms":30000}]}`, "One mail every 30 seconds. Next in 0:02.", "One mail every 30 seconds. Next in 2 seconds."},
		{`{"wait_ms":1000,"limit":"odd","limits":[{"name":"odd","limit":12,"window_ms":5400000}]}`, "12 mails in 90 minutes are used up. Next in 0:01.", "12 mails in 90 minutes are used up. Next in 1 second."},
		{`{"wait_ms":3600000,"limit":"unheard of"}`, "Next in 1:00:00.", " Next in 1 hour."},
	} {
		v.update(tt.answer)
		v.shows(tt.want)
		if said := v.look().Said; said[len(said)-1] != tt.aloud {
			t.Errorf("said %q, want %q", said[len(said)-1], tt.aloud)
		}
	}
}

func saysWhyInChinese(t *testing.T, v *tab, p *player) {
	p.body = `<div lang="zh-CN">` + beside + `</div>`
	v.visit(p)
	for _, tt := range []struct{ answer, want, aloud string }{
		{sent(42_000, first, "one"), "每分钟限发一封邮件。 0:42后可再次发送。", "每分钟限发一封邮件。 42秒钟后可再次发送。"},
		{refused("mailbox", "hour", 750_000, second), "1小时内的 5 封邮件已用完。 12:30后可再次发送。", "1小时内的 5 封邮件已用完。 12分钟30秒钟后可再次发送。"},
	} {
		v.update(tt.answer)
		v.shows(tt.want)
		if said := v.look().Said; said[len(said)-1] != tt.aloud {
			t.Errorf("said %q, want %q", said[len(said)-1], tt.aloud)
		}
	}
	v.pass(750_101)
	v.shows("")
	if said := v.look().Said; said[len(said)-1] != "现在可以再次发送邮件了。" {
		t.Errorf("said %q at the end", said[len(said)-1])
	}
}

// Another language is added once for all; an attribute is for one element.
func saysItInOtherWords(t *testing.T, v *tab, p *player) {
	p.body = `<div lang="pl">` + beside + `</div>`
	v.visit(p)
	v.run(`customElements.get("mailgate-countdown").texts.pl = {
		limit: ({ n, plural }) => n + " " + { one: "mail", few: "maile", many: "maili" }[plural] + ".",
		wait: "Za {time}.", end: "Już." }`)
	v.update(refused("mailbox", "hour", 2000, first))
	v.shows("5 maili. Za 0:02.")
	v.update(sent(61_000, second, "one"))
	v.shows("1 mail. Za 1:01.")
	v.element(`setAttribute("wait-text", "{time} {unknown} <b>{n}</b>")`)
	v.element(`setAttribute("limit-text", "")`)
	v.update(sent(60_000, first, "two"))
	v.shows("1:00 {unknown} <b>1</b>")
}

func afterAReload(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.mustShow("")
	v.update(sent(60_000, first, "a-token"))
	v.pass(20_000)
	v.shows("One mail a minute. Next in 0:40.")
	p.says(200, still(39_500, first))
	v.do(chromedp.Reload())
	v.until("the server's word counts", func() bool { return v.look().count("start") == 1 })
	v.mustShow("One mail a minute. Next in 0:40.")
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
	v.shows("One mail a minute. Next in 1:00.")
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
		v.shows("One mail a minute. Next in 1:00.")
		v.pass(30_000)
		v.shows("One mail a minute. Next in 0:30.")
		v.setClock(off)
		p.says(200, still(30_000, first))
		v.do(chromedp.Reload())
		v.shows("One mail a minute. Next in 0:30.")
		v.pass(29_999)
		v.mustShow("One mail a minute. Next in 0:01.")
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
			v.shows("One mail a minute. Next in 0:39.")
			v.pass(38_999)
			v.mustShow("One mail a minute. Next in 0:01.")
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
	v.shows("One mail a minute. Next in 0:09.")
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
	v.shows("One mail a minute. Next in 0:07.")
}

// A send in one tab starts the countdown in the other, and neither keeps the other busy.
func twoTabs(t *testing.T, v *tab, p *player) {
	v.visit(p)
	other := v.another(timeMachine)
	other.visit(p)
	other.mustShow("")
	p.says(200, still(59_900, first))
	v.update(sent(60_000, first, "a-token"))
	other.shows("One mail a minute. Next in 1:00.")
	other.until("the server's word counts", func() bool { return other.look().count("start") == 1 })
	if asked := p.questions(); asked != "a-token" {
		t.Errorf("asked for %q", asked)
	}
	other.pass(30_000)
	other.shows("One mail a minute. Next in 0:30.")
	v.mustShow("One mail a minute. Next in 1:00.")

	p.says(200, still(59_000, second)) // the next send
	other.update(sent(60_000, second, "b-token"))
	v.shows("One mail a minute. Next in 0:59.")

	other.pass(60_100) // is over in one, and the other asks before it believes it
	other.mustShow("")
	v.until("it asks", func() bool { return strings.HasSuffix(p.questions(), "b-token b-token") })
	v.mustShow("One mail a minute. Next in 0:59.")
	if p.asks() != 3 {
		t.Errorf("asked for %q", p.questions())
	}
}

func theBackButtonPageKept(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.do(chromedp.Navigate(p.URL + "/elsewhere"))
	p.says(200, still(13_000, first))
	v.back()
	v.shows("One mail a minute. Next in 0:13.")
	if s := v.look(); !s.Restored || p.asks() != 1 {
		t.Errorf("page kept by the browser: %t, asked for %q", s.Restored, p.questions())
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
		if v.failures() != i+1 {
			t.Fatalf("asked %d times within %v ms", v.failures(), wait)
		}
		v.pass(1050)
	}
	v.until("it learns that nobody answers", func() bool { return v.failures() == 4 })
	v.mustShow("One mail a minute. Next in 0:50.")
	v.forgive()
	p.says(200, still(40_000, first))
	v.offline(false)
	v.shows("One mail a minute. Next in 0:40.")
	if s := v.look(); s.count("start") != 2 || s.count("end") != 0 || p.asks() != 1 {
		t.Errorf("asked for %q, events %v", p.questions(), s.Events)
	}
}

func networkLossAfterAReload(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(20_000)
	p.says(500, "{}")
	v.do(chromedp.Reload())
	v.until("it goes on with what it knows", func() bool { return v.look().count("start") == 1 })
	v.mustShow("One mail a minute. Next in 0:40.")
	p.says(200, still(39_000, first))
	v.pass(1000)
	v.shows("One mail a minute. Next in 0:39.")
	v.forgive()
	v.pass(39_101)
	v.mustShow("")
	if s := v.look(); s.count("start") != 1 || s.count("end") != 1 {
		t.Errorf("events %v", s.Events)
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
	v.mustShow("One mail a minute. Next in 0:25.")
	if s := v.look(); p.asks() != 1 || len(s.Said) != 1 {
		t.Errorf("asked for %q, said %q", p.questions(), s.Said)
	}
}

// A 429 that comes without a token may be another mailbox's: the token at hand must not
// shorten its wait. One that names the moment that is known is the same mailbox's.
func anotherMailboxsRefusal(t *testing.T, v *tab, p *player) {
	v.visit(p)
	p.says(200, still(30_000, first))
	v.update(sent(60_000, first, "a-token"))
	v.update(refused("mailbox", "minute", 31_000, first))
	v.comesBack()
	v.shows("One mail a minute. Next in 0:30.")
	v.update(refused("mailbox", "hour", 3_000_000, second))
	v.comesBack()
	v.pass(1000)
	v.mustShow("Five mails in an hour are used up. Next in 49:59.")
	if p.asks() != 1 {
		t.Errorf("asked for %q", p.questions())
	}
}

// How long another rule says no, the mailbox's token cannot tell.
func anotherRulesRefusal(t *testing.T, v *tab, p *player) {
	v.visit(p)
	p.says(200, still(0, first))
	v.update(strings.Replace(refused("client-ip", "hour", 600_000, first), "{", `{"countdown":"a-token",`, 1))
	v.comesBack()
	v.pass(1000)
	v.mustShow("Five mails in an hour are used up. Next in 9:59.")
	v.do(chromedp.Reload())
	v.shows("Five mails in an hour are used up. Next in 9:59.")
	if p.asks() != 0 {
		t.Errorf("asked for %q", p.questions())
	}
}

// An answer that was on its way when a mail was sent is out of date.
func anAnswerOvertaken(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(59_000)
	goOn := p.hesitates()
	p.says(200, still(1000, first))
	v.comesBack()
	v.until("it asks", func() bool { return p.asks() == 1 })
	v.update(sent(60_000, second, "b-token"))
	goOn()
	p.says(200, still(60_000, second))
	v.element("refresh()")
	v.until("it asks", func() bool { return p.asks() == 2 })
	v.pass(2000)
	v.mustShow("One mail a minute. Next in 0:58.")
}

func answersThatAreNone(t *testing.T, v *tab, p *player) {
	v.visit(p)
	for _, answer := range []string{"null", "undefined", "{}", `"no"`, "{wait_ms: -1}", "{wait_ms: NaN}", "{wait_ms: Infinity}", `{wait_ms: "60000"}`, "{wait_ms: null}", "{status: 503}"} {
		if get[bool](v, "document.querySelector('mailgate-countdown').update("+answer+")") {
			t.Errorf("took %s", answer)
		}
		v.mustShow("")
	}
	v.update(sent(60_000, first, "a-token"))
	for i, answer := range []string{"null", "[]", "no JSON", `{"wait_ms":-1}`, `{"wait_ms":1e999}`, `{"wait_ms":"0"}`} {
		p.says(200, answer)
		get[bool](v, `document.querySelector("mailgate-countdown").refresh().then(() => true)`)
		v.mustShow("One mail a minute. Next in 1:00.")
		if p.asks() != i+1 {
			t.Fatalf("asked %d times", p.asks())
		}
	}
	v.run(`localStorage["mailgate-countdown:resend"] = '{"wait":"x","until":{}}'`)
	v.do(chromedp.Reload())
	v.mustShow("")
}

// The button keeps the focus, is there for a screen reader, and does nothing.
func theButton(t *testing.T, v *tab, p *player) {
	v.visit(p)
	press := func() {
		v.do(chromedp.Click(chromedp.CSS("#resend")), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(" "))
		v.run(`document.getElementById("code").focus()`)
		v.do(chromedp.KeyEvent(kb.Enter)) // submits the form by its button
		v.run(`document.getElementById("resend").focus()`)
	}
	press()
	if s := v.look(); s.Clicks != 4 || s.Submits != 4 {
		t.Fatalf("before the wait, of 4 presses: %+v", s)
	}
	v.update(sent(60_000, first, "a-token"))
	press()
	if s := v.look(); s.Clicks != 4 || s.Submits != 4 || !s.Focused || !s.Held || s.Disabled {
		t.Errorf("during the wait: %+v", s)
	}
	v.pass(60_101)
	if s := v.look(); !s.Focused || s.Held || s.Disabled {
		t.Errorf("after the wait: %+v", s)
	}
	press()
	if s := v.look(); s.Clicks != 8 || s.Submits != 8 {
		t.Errorf("after the wait, of 4 more presses: %+v", s)
	}
}

func aButtonInside(t *testing.T, v *tab, p *player) {
	p.body = around
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.do(chromedp.Click(chromedp.CSS("#resend")))
	v.mustShow("One mail a minute. Next in 1:00.")
	v.pass(60_101)
	v.do(chromedp.Click(chromedp.CSS("#resend")))
	if s := v.look(); s.Clicks != 1 || s.Held {
		t.Errorf("%+v", s)
	}
}

// A framework may draw the button anew, or later.
func aReplacedButton(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.run(`window.old = document.getElementById("resend")`)
	v.run(`old.remove()`)
	v.update(sent(60_000, first, "a-token"))
	v.run(`document.querySelector("form").append(Object.assign(document.createElement("button"), {id: "resend", textContent: "New"}))`)
	v.do(chromedp.Click(chromedp.CSS("#resend")))
	v.pass(1000)
	if s := v.look(); !s.Held || s.Submits != 0 {
		t.Errorf("%+v", s)
	}
	v.run(`document.getElementById("resend").replaceWith(old)`)
	v.pass(1000)
	v.pass(58_101)
	v.mustShow("")
}

// A screen reader hears the start, the end, and the answer to a press. Not every second.
func whatIsSaidAloud(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(18_000)
	v.do(chromedp.Click(chromedp.CSS("#resend")))
	v.pass(42_101)
	want := []string{"One mail a minute. Next in 1 minute.", "Next in 42 seconds.", "You can ask for the next mail now."}
	if said := v.look().Said; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	tree := get[string](v, `Array.from(document.querySelector("mailgate-countdown").shadowRoot.querySelectorAll("[role]"), (e) => e.role + " " + (e.ariaLive ?? "")).join()`)
	if tree != "timer ,status " { // a timer is silent of itself, a status polite
		t.Errorf("roles: %q", tree)
	}
}

// A server that renders can say all in attributes; the page may be an old one, so the
// server is asked.
func aPageThatComesWithTheWait(t *testing.T, v *tab, p *player) {
	p.body = with(`src="/countdown/a-token" wait-ms="60000" limit="hour" limits='` + tiers + `'`)
	p.says(200, strings.Replace(still(59_000, first), "minute", "hour", 1))
	v.visit(p)
	v.shows("Five mails in an hour are used up. Next in 0:59.")
	if s := v.look(); s.count("start") != 1 || len(s.Said) != 1 || p.asks() != 1 {
		t.Errorf("asked for %q, saw %+v", p.questions(), s)
	}
	p.body = beside // the next page knows nothing, and remembers
	v.visit(p)
	v.shows("Five mails in an hour are used up. Next in 0:59.")
}

// Frameworks write attributes; those that change together are one answer.
func attributesThatChange(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.run(`Object.assign(document.querySelector("mailgate-countdown"), {src: "/countdown/a-token", limit: "minute", limits: ` + tiers + `, waitMs: 60000})`)
	v.shows("One mail a minute. Next in 1:00.")
	v.pass(10_000)
	v.element(`setAttribute("src", "/countdown/b-token")`) // the next send, with the same wait
	v.shows("One mail a minute. Next in 1:00.")
	if s := v.look(); s.count("start") != 2 || p.asks() != 0 {
		t.Errorf("asked for %q, saw %+v", p.questions(), s)
	}
	p.says(200, still(5000, first))
	v.element(`removeAttribute("wait-ms")`)
	v.shows("One mail a minute. Next in 0:05.")
	if p.questions() != "b-token" {
		t.Errorf("asked for %q", p.questions())
	}
}

func propertiesSetTooEarly(t *testing.T, v *tab, p *player) {
	p.body = ""
	v.visit(p)
	v.run(`(() => {
		const early = document.createElement("later-countdown");
		early.waitMs = 5000;
		early.limits = ` + tiers + `;
		early.limit = "hour";
		document.body.append(early);
		customElements.define("later-countdown", class extends customElements.get("mailgate-countdown") {});
		window.early = early;
	})()`)
	if text := get[string](v, `early.shadowRoot.querySelector("[part=text]").textContent`); text != "Five mails in an hour are used up. Next in 0:05." {
		t.Errorf("it shows %q", text)
	}
}

func noStorage(t *testing.T, v *tab, p *player) {
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `if (location.protocol === "http:") Object.defineProperty(window, "localStorage", { get() { throw new DOMException("no", "SecurityError") } })`,
	})
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(60_101)
	v.mustShow("")
	if s := v.look(); s.count("end") != 1 {
		t.Errorf("%+v", s)
	}
}

// The visitor types another address, or the page takes the element away.
func resetAndRemoval(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.element("reset()")
	v.mustShow("")
	v.do(chromedp.Reload())
	v.mustShow("")
	v.update(sent(60_000, first, "a-token"))
	v.pass(1000)
	p.says(200, still(58_000, first))
	v.run(`(window.gone = document.querySelector("mailgate-countdown")).remove()`)
	if get[bool](v, `document.getElementById("resend").hasAttribute("aria-disabled")`) {
		t.Error("the button is held by nobody")
	}
	v.run("document.body.append(gone)")
	v.shows("One mail a minute. Next in 0:58.")
	if s := v.look(); s.count("end") != 0 || p.asks() != 1 {
		t.Errorf("asked for %q, saw %+v", p.questions(), s)
	}
}

// Without the time machine: never early, and hardly late.
func onRealClocks(t *testing.T, v *tab) {
	p := newPlayer(t, beside)
	v.visit(p)
	took := get[float64](v, `new Promise((resolve) => {
		const began = performance.now();
		document.addEventListener("mailgate-end", () => resolve(performance.now() - began));
		document.querySelector("mailgate-countdown").update({ wait_ms: 1200 });
	})`)
	if took < 1200 || took > 3000 {
		t.Errorf("1200 ms took %v", took)
	}
}

// On a server that renders, the module loads and does nothing. A worker has no elements
// either.
func whereThereAreNoElements(t *testing.T, v *tab) {
	p := newPlayer(t, beside)
	v.do(chromedp.Navigate(p.URL + "/elsewhere"))
	got := get[string](v, `new Promise((resolve) => {
		const worker = new Worker("/worker.js", { type: "module" });
		worker.onmessage = ({ data }) => resolve(data);
		worker.onerror = ({ message }) => resolve("error: " + message);
	})`)
	if got != "MailgateCountdown without HTMLElement" {
		t.Errorf("the worker says %q", got)
	}
}

func sizeOnTheWire(t *testing.T, v *tab) {
	p := newPlayer(t, "")
	v.do(chromedp.Navigate(p.URL + "/elsewhere"))
	v.received.Store(0)
	v.run(`fetch("/mailgate-countdown.js").then((response) => response.text())`)
	v.until("it is received", func() bool { return v.received.Load() > 1000 })
	if n := v.received.Load(); n >= 8*1024 {
		t.Errorf("%d bytes, and 8 KB is the most", n)
	} else {
		t.Logf("%d bytes with their headers", n)
	}
}
