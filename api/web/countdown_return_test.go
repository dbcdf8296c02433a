package web_test

import (
	"strings"
	"testing"
)

// After a reload the button is held until the server has answered, and then counts on.
func TestCountdown_Reload_CountsOn(t *testing.T) {
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
	p, v := newSite(t, beside)
	other := v.another(timeMachine)
	other.visit(p.URL)
	v.update(sent(20_000, first, "")) // without a token the visitor's clock tells the other tab
	other.shows("One email a minute. Next in 0:20.")
	other.update(sent(60_000, second, ""))
	v.shows("One email a minute. Next in 1:00.")

	p.says(200, still(59_900, first))
	v.update(sent(60_000, first, "a-token"))
	other.until("the server's answer counts", func() bool { return other.look().count("start") == 3 })
	other.pass(30_000)
	other.shows("One email a minute. Next in 0:30.")
	v.mustShow("One email a minute. Next in 1:00.")
	p.says(200, still(59_000, second))
	other.update(sent(60_000, second, "b-token"))
	v.shows("One email a minute. Next in 0:59.")
	other.pass(60_100)
	other.mustShow("")
	v.until("it asks", func() bool { return strings.HasSuffix(p.tokens(), " b-token b-token") })
	v.mustShow("One email a minute. Next in 0:59.")
	if got := p.tokens(); got != "a-token b-token b-token" { // neither keeps the other busy
		t.Errorf("asked for %q", got)
	}
}

// Each mailbox has a wait of its own, which is there again with the mailbox. No address is stored.
func TestCountdown_TwoMailboxes_WaitApart(t *testing.T) {
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

// Back to a page that the browser has kept, and to one that it loads again.
func TestCountdown_BackButton_CountsOn(t *testing.T) {
	const arrived = `document.querySelector("mailgate-countdown")?.shadowRoot`
	for _, kept := range []bool{true, false} {
		p, v := newSite(t, beside)
		if !kept {
			p.cache = "no-store"
			p.says(200, still(60_000, first))
			p.shows(v, with(`src="/countdown/old-token" wait-ms="60000"`))
			v.shows("Next in 1:00.")
		}
		for tries := 1; ; tries++ {
			v.update(sent(60_000, first, "a-token"))
			v.visit(p.URL + "/elsewhere")
			p.says(200, still(13_000, first))
			v.back(arrived)
			v.isTrue(`look().text.endsWith("Next in 0:13.")`)
			if restored := v.look().Restored; restored == kept {
				break
			} else if tries == 3 { // Chromium does not keep a page that takes over 3 s to come to rest
				t.Fatalf("the browser kept the page: %t, want %t", restored, kept)
			}
		}
	}
}

// Where the server cannot be asked after a reload the visitor's clock decides, never for longer
// than was ever said, and the question is repeated until there is an answer.
func TestCountdown_NetworkLossAfterReload_TrustsTheClock(t *testing.T) {
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

// A token that has expired is asked for once. A tab that still has it is not misled by the other.
func TestCountdown_ExpiredToken_IsAskedForOnce(t *testing.T) {
	p, v := newSite(t, beside)
	other := v.another(timeMachine)
	p.says(200, still(60_000, first))
	other.visit(p.URL)
	v.update(sent(60_000, first, "a-token"))
	other.started()
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

// What was stored since stays when a wait ends, and a wait that ended while the visitor was away
// is nothing to the next page.
func TestCountdown_StoredWait_IsNewerOrOver(t *testing.T) {
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

func TestCountdown_NoStorage_CountsAll(t *testing.T) {
	p, _ := newSite(t, beside)
	v := newVisitor(t, strings.Replace(timeMachine, "const storage = localStorage;", "const storage = {};", 1), withoutStorage)
	v.visit(p.URL)
	v.update(sent(60_000, first, ""))
	v.pass(20_000)
	v.run(`document.body.prepend(document.querySelector("mailgate-countdown"))`) // the page is rearranged
	v.mustShow("One email a minute. Next in 0:40.")
	v.pass(40_101)
	if s := v.look(); s.Text != "" || s.count("start") != 1 || s.count("end") != 1 || len(s.Said) != 2 {
		t.Errorf("%+v", s)
	}
}
