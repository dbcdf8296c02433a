package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
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
	Clicks, Submits, Fetches         int
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

// isHeardBy waits until another tab has been told of all that this one has stored: a mark is
// stored last, and told of last.
func (tb *tab) isHeardBy(other *tab) {
	tb.t.Helper()
	other.run(`window.heard = new Promise(done => addEventListener("storage", event => event.key === "mark" && done(true)))`)
	tb.run(`localStorage.mark = Math.random()`)
	get[bool](other, "heard")
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
		{"tells a second once", tellsASecondOnce},
		{"says why in English", saysWhyInEnglish},
		{"says why in Chinese", saysWhyInChinese},
		{"says it in other words", saysItInOtherWords},
		{"the nearest language", theNearestLanguage},
		{"which way the words run", whichWayTheWordsRun},
		{"the language of a host", theLanguageOfAHost},
		{"after a reload it goes on", afterAReload},
		{"after a reload the button waits for the answer", afterAReloadTheButtonWaits},
		{"a clock that is wrong", aWrongClock},
		{"a clock that is set on the way", aClockThatIsSet},
		{"sleep", sleep},
		{"a frozen tab", aFrozenTab},
		{"two tabs", twoTabs},
		{"two tabs without a token", twoTabsWithoutAToken},
		{"the back button, page kept", theBackButtonPageKept},
		{"the back button, page loaded", theBackButtonPageLoaded},
		{"every sign of lost time", everySignOfLostTime},
		{"a long wait", aLongWait},
		{"a slow answer", aSlowAnswer},
		{"a server's clock that is set back", aServersClockThatIsSetBack},
		{"a server's clock that is set back, two tabs", aServersClockThatIsSetBackForTwo},
		{"no answer", noAnswer},
		{"network loss", networkLoss},
		{"network loss after a reload", networkLossAfterAReload},
		{"network loss after a wait that grew", networkLossAfterAWaitThatGrew},
		{"network loss and a wrong clock", networkLossAndAWrongClock},
		{"a newer wait is kept", aNewerWaitIsKept},
		{"a wait that ended meanwhile", aWaitThatEndedMeanwhile},
		{"a token that has expired", anExpiredToken},
		{"a token that another tab has lost", aTokenThatAnotherTabLost},
		{"another mailbox's refusal", anotherMailboxsRefusal},
		{"another rule's refusal", anotherRulesRefusal},
		{"an answer overtaken by a send", anAnswerOvertaken},
		{"an answer given again", anAnswerGivenAgain},
		{"answers that are none", answersThatAreNone},
		{"an answer from a listener", anAnswerFromAListener},
		{"an answer from the first tick", anAnswerFromTheFirstTick},
		{"the button, by keyboard and mouse", theButton},
		{"a button inside", aButtonInside},
		{"a button in a closed tree", aButtonInAClosedTree},
		{"a button that is replaced", aReplacedButton},
		{"a page that is a copy", aPageThatIsACopy},
		{"a copy that has a mailbox", aCopyThatHasAMailbox},
		{"what is said aloud", whatIsSaidAloud},
		{"a page that comes with the wait", aPageThatComesWithTheWait},
		{"attributes that change", attributesThatChange},
		{"attributes that come late", attributesThatComeLate},
		{"properties set too early", propertiesSetTooEarly},
		{"no storage", noStorage},
		{"reset and removal", resetAndRemoval},
		{"a panel that scrolls", aPanelThatScrolls},
		{"the types are true", theTypesAreTrue},
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
