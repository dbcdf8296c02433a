package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// signsIn opens the console.
func (tb *tab) signsIn(s *server) {
	tb.t.Helper()
	tb.visit(s.URL + "/admin")
	tb.reads("gate-title", "Sign in")
	tb.enters("key", adminKey)
	tb.reads("mailbox-title", "Mailbox")
}

func (tb *tab) looksUp(email string) {
	tb.t.Helper()
	tb.enters("email", email)
	tb.reads("found-title", email)
}

// lanes describes the lanes of the mailbox: whether one is full, its words, its emails, and
// how many dots are refused.
const lanes = `[...document.querySelectorAll("#lanes li")].map((lane) => [lane.className, lane.querySelector("strong").textContent, lane.querySelector("svg").ariaLabel,
	[...lane.querySelectorAll(".send")].reduce((sum, dot) => sum + Number(dot.dataset.emails), 0), lane.querySelectorAll(".blocks").length, lane.querySelectorAll(".refused").length].join(" | ")).join("\n")`

// crowded lists the dots that overlap another or leave their band.
const crowded = `[...document.querySelectorAll(".lanes svg")].flatMap((lane) => {
	const band = lane.querySelector(".band").getBoundingClientRect();
	const dots = [...lane.querySelectorAll(".send")].map((dot) => dot.getBoundingClientRect());
	return dots.filter((dot, i) => dot.left < band.left || dot.right > band.right || (i > 0 && dot.left < dots[i - 1].right)).map((dot) => dot.left);
})`

// The key is kept for the tab until the operator signs out, and in no other place.
func TestConsole_SignIn_KeepsTheKeyForTheTab(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	v.visit(s.URL + "/admin")
	for _, tt := range [][2]string{{"", "Type a key."}, {"two words", "no spaces"}, {"ключ", "no spaces"}, {apiKey, "This is not an admin key."}} {
		v.enters("key", tt[0])
		v.reads("sign-in-note", tt[1])
	}
	v.is("document.activeElement.id + sessionStorage.length", "key0")
	v.enters("key", adminKey)
	v.reads("announce", "Signed in.")
	v.hasFocus("email")
	v.is("document.cookie.length + localStorage.length + key.value.length", "0")
	v.reload()
	v.reads("mailbox-title", "Mailbox")
	v.click("#sign-out")
	v.reads("gate-title", "Sign in")
	v.is("sessionStorage.length", "0")
}

func TestConsole_NoKeysSet_AsksForNone(t *testing.T) {
	s, v := newServer(t, func(o *api.Options) { o.APIKeys, o.AdminKeys = api.Keys{}, api.Keys{} }), newVisitor(t, withoutStorage)
	v.visit(s.URL + "/admin")
	v.reads("store-pill", "storage ready")
	v.is(`document.getElementById("sign-out").hidden`, "true")
}

// One operator's story, with the mailboxes in Redis: look a mailbox up, see its lanes, try
// other tiers, and reset it by keyboard.
func TestConsole_OnRedis_LooksUpTriesAndResets(t *testing.T) {
	s, v := newServerOnRedis(t), newVisitor(t)
	s.sent("carol@example.com", 23*time.Hour+59*time.Minute, 3*time.Hour, 2*time.Hour, 59*time.Minute, 40*time.Minute, 38*time.Minute, 20*time.Second)
	v.visit(s.URL + "/admin?email=Carol%2Bx%40example.com") // a link opens a mailbox after signing in
	v.enters("key", adminKey)
	v.reads("found-title", "Carol+x@example.com")
	v.hasFocus("found-title")
	v.is("location.search", "") // the next operator does not see it
	v.reads("announce", "Carol+x@example.com: Minute limit reached. Next email in ")
	v.reads("found-why", "Minute limit reached. Next email at ")
	v.reads("found-guesses", "5 of 5 code attempts left.")
	v.is(lanes, `full | minute · 1 in 60 s | 1 of 1 emails in the last 60 s | 1 | 1 | 0
 | hour · 5 in 1 h | 4 of 5 emails in the last 1 h | 4 | 0 | 0
 | day · 10 in 24 h | 7 of 10 emails in the last 24 h | 7 | 0 | 0`)
	v.is(crowded, "")
	// After 20 s a dot is two thirds of the way from the left end to now, and moves on.
	const place = `((dot, lane) => (dot.getAttribute("cx") - 11) / (lane.clientWidth - 22))(document.querySelector("#lanes .blocks"), document.querySelector("#lanes svg"))`
	before := get[float64](v, place)
	if before > 0.67 {
		t.Errorf("an email of 20 s ago is drawn at %v of the lane", before)
	}
	v.isTrue(fmt.Sprintf("%s < %v", place, before))

	v.enters("tiers", "minute=1/60s,hour=1/1h")
	v.reads("tried-sum", "1 mailbox, 7 emails: 3 refused in 1 mailbox.")
	v.reads("tried-tiers", "minute1 in 60 s1 in 60 s0hour5 in 1 h1 in 1 h3day10 in 24 hnone")
	v.reads("found-tried", "3 emails of this mailbox would have been refused by minute=1/60s,hour=1/1h.")
	v.is(`[...document.querySelectorAll("#lanes .refused, #worst .refused")].length > 1`, "true")
	v.is(crowded, "")

	v.enters("reason", "ticket 4711")
	v.reads("confirm-text", "Removes 7 emails and the code attempts of Carol+x@example.com")
	v.hasFocus("keep")
	v.press(kb.Escape)
	v.isTrue("!confirm.open")
	v.reads("sends-title", "7 emails on record")
	v.run("reason.focus()")
	v.press(kb.Enter, kb.Tab, kb.Enter)
	v.reads("announce", "Carol+x@example.com was reset: 7 emails and 0 code attempts removed.")
	v.reads("found-pill", "ready")
	v.reads("sends-title", "0 emails on record")
	v.reads("found-why", "No limit reached. Rules by API key, visitor or template are not checked here.")
	if _, answer := s.post("/send-code", `{"email":"carol@example.com"}`); !strings.Contains(answer, `"sent"`) {
		t.Errorf("after the reset: %s", answer)
	}
}

// A reset concerns the mailbox in its question. Another that is looked up meanwhile stays on
// the page, and has a reason of its own.
func TestConsole_AnotherMailboxMeanwhile_IsNotReset(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	s.sent("alice@example.com", 0)
	s.sent("bob@example.com", 0)
	v.signsIn(s)
	v.looksUp("alice@example.com")
	v.types("reason", "asked by alice")
	v.run(holdAnswers)
	v.enters("email", "bob@example.com")
	v.isTrue("asked === 1")
	v.click("#ask-reset")
	get[bool](v, "letGo()")
	v.reads("confirm-text", "1 email and the code attempts of alice@example.com")
	v.reads("found-title", "alice@example.com")
	v.run(holdAnswers)
	v.click("#reset-now")
	v.isTrue("asked === 1")
	v.run("window.fetch = asking")
	v.looksUp("bob@example.com")
	v.is("reason.value", "")
	v.types("reason", "asked by bob")
	get[bool](v, "letGo()")
	v.reads("announce", "alice@example.com was reset: 1 email and 0 code attempts removed.")
	v.is(`[document.getElementById("found-title").textContent, reason.value, document.getElementById("sends-title").textContent].join()`, "bob@example.com,asked by bob,1 email on record")
	v.looksUp("alice@example.com")
	v.reads("sends-title", "0 emails on record")
}

// A failed reset names its mailbox. After signing out nothing of it is shown.
func TestConsole_FailedReset_NamesTheMailbox(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	v.signsIn(s)
	for _, tt := range [][2]string{
		{`Promise.reject(new TypeError("lost"))`, "carol@example.com: No answer. The reset may or may not be done."},
		{`{ status: 503, json: async () => ({ detail: "Storage unavailable." }) }`, "carol@example.com: Storage unavailable."},
		{`{ status: 429, json: async () => ({ title: "Slow down.", wait_ms: 9000 }) }`, "Too many lookups."},
		{`{ status: 401, json: async () => ({}) }`, ""},
	} {
		v.looksUp("carol@example.com")
		v.run(`(() => { const ask = window.fetch; window.fetch = async (path, ...rest) => {
			if (!path.endsWith("/reset")) return ask(path, ...rest);
			window.fetch = ask;
			return ` + tt[0] + `;
		}; })()`)
		v.click("#ask-reset")
		v.click("#reset-now")
		if tt[1] != "" {
			v.reads("look-note", tt[1])
		}
	}
	v.reads("sign-in-note", "This key is no longer valid.")
	v.is(`[found.hidden, document.getElementById("look-note").textContent, document.getElementById("email").value].join()`, "true,,")
}

func TestConsole_FailedLookup_SaysWhy(t *testing.T) {
	bucket := must(throttle.NewTokenBucket(throttle.Tier{Name: "slow", Limit: 4, Window: 10 * time.Minute}, 4))(t)
	stopped := func() int64 { return 1 }
	store := must(cache.Open(cache.Options{Now: stopped}))(t)
	t.Cleanup(func() { store.Close() })
	s, v := newServer(t, func(o *api.Options) { o.Lookups = local.New(store.Table("lookups"), bucket, stopped) }), newVisitor(t)
	v.signsIn(s)
	v.enters("email", "")
	v.reads("look-note", "Type an address.")
	v.enters("email", "erin")
	v.reads("look-note", "The address has no @.")
	s.broken.Store(true)
	v.enters("email", "erin@example.com")
	v.reads("look-note", "The records cannot be read now. Try again shortly.")
	s.broken.Store(false)
	v.looksUp("erin@example.com")
	v.is(`document.getElementById("look-note").textContent`, "")
	v.looksUp("frank@example.com")
	v.enters("email", "frank@example.com")
	v.reads("look-note", "Too many lookups.")
	v.reads("announce", "Try again in 2 minutes 30 seconds")
	shown := v.text("look-wait")
	v.run(`window.alerted = document.getElementById("look-note").firstChild`)
	v.until("the wait goes on", func() bool { return v.text("look-wait") != shown })
	v.is("alerted.isConnected + String(found.hidden)", "truetrue") // an alert is read aloud whenever it is written
}

// The last hour and the totals are of the server, so they are there at once.
func TestConsole_Figures_ShowTheLastHour(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	const burst = 12
	for i := range burst {
		s.sendCode(fmt.Sprintf("burst%d@example.com", i))
	}
	s.sendCode("burst0@example.com")
	v.signsIn(s)
	v.reads("sent-rate", fmt.Sprint(burst))
	v.is(`document.getElementById("figures-title").textContent + document.querySelector(".plot").textContent.trim() + document.querySelector(".axis").textContent + document.querySelector("polyline").points.length`, fmt.Sprintf("Last hour%d060 min agonow181", burst))
	v.reads("numbers", fmt.Sprintf("Sent%dRefused1Failed0", burst))
	v.reads("refusals", "mailboxminute1")
	v.reads("relay-pill", "relay ready")
	s.relay.Close()
	s.sendCode("late@example.com")
	v.reads("numbers", fmt.Sprintf("Sent%dRefused1Failed1", burst))
}

// Figures that are out of date say so once, as an alert is read aloud whenever it is written.
func TestConsole_ServerAway_SaysThatFiguresAreOld(t *testing.T) {
	s, v := newServer(t, func(o *api.Options) { o.DegradedSince = func() int64 { return 1_800_000_000_000 } }), newVisitor(t, timeMachine)
	v.signsIn(s)
	v.reads("store-pill", "storage away since ")
	v.is(`document.getElementById("store-pill").className`, "pill wait")
	v.offline(true)
	const note = `document.getElementById("figures-note").textContent`
	polls := func(until string) {
		t.Helper()
		v.until(until, func() bool { v.pass(2000); return get[bool](v, until) })
	}
	polls(note + ` === "No answer from the server. These figures are out of date."`)
	v.run(`(() => { window.alerted = document.getElementById("figures-note").firstChild; const ask = window.fetch; window.tries = 0; window.fetch = (...all) => { tries++; return ask(...all); }; })()`)
	polls("tries > 2")
	v.is("alerted.isConnected", "true")
	v.offline(false)
	polls(note + ` === ""`)
	v.complains("ERR_INTERNET_DISCONNECTED")
	v.run(`window.fetch = (path, { signal }) => new Promise((_, fail) => { window.hangs = true; signal.addEventListener("abort", () => fail(signal.reason)); })`)
	polls("window.hangs === true")
	v.pass(20_000)
	v.isTrue(note + ` !== ""`) // a request that hangs is given up
}

func TestConsole_WhatIf_ComparesTheTiers(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	s.sent("heidi@example.com", 3*time.Hour, 2*time.Hour, time.Hour)
	s.sent("ivan@example.com", time.Hour)
	v.signsIn(s)
	v.enters("tiers", "hour=0/1h")
	v.reads("try-note", "Tier hour: the limit must be between 1 and 1000, not 0.")
	v.types("tiers", "pause=1/90m,day=2/24h")
	v.staysBusy("#try-now")
	v.reads("tried-sum", "2 mailboxes, 4 emails: 1 refused in 1 mailbox.")
	v.reads("tried-tiers", "minute1 in 60 snonehour5 in 1 hnoneday10 in 24 h2 in 24 h0pausenone1 in 90 min1")
	v.reads("announce", "1 refused in 1 mailbox")
	v.run(holdAnswers)
	v.click("#try-now")
	v.click("#sign-out")
	v.is(`tiers.value + document.getElementById("tried-sum").textContent + document.getElementById("try-now").ariaBusy`, "null")
	get[bool](v, "letGo()")
	v.is("tried.hidden", "true")
}
