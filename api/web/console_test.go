package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// All tests share one browser; each has an operator and a server of its own. What a page
// complains about, such as what its policy forbids, fails the test.
func TestConsoleInABrowser(t *testing.T) {
	browser := openBrowser(t)
	for _, tt := range []struct {
		name    string
		options func(*api.Options)
		test    func(t *testing.T, v *tab, d *desk)
	}{
		{"signing in, by keyboard, and out", nil, signingIn},
		{"keys that will not do", nil, wrongKeys},
		{"where no key is asked for", func(o *api.Options) { o.APIKeys, o.AdminKeys = api.Keys{}, api.Keys{} }, noKeyAskedFor},
		{"a mailbox", nil, aMailbox},
		{"a mailbox in large letters", nil, aMailboxInLargeLetters},
		{"a mailbox that is forgotten, by keyboard", nil, aMailboxForgotten},
		{"another is looked up while a mailbox is forgotten", nil, anotherMeanwhile},
		{"another is looked up when a mailbox is to be forgotten", nil, anotherUnderTheQuestion},
		{"a mailbox that could not be forgotten", nil, notForgotten},
		{"addresses that will not do", nil, wrongAddresses},
		{"a store that fails", nil, aFailingStore},
		{"too many lookups", oneLookup(t), tooManyLookups},
		{"too many lookups, as something in front says it", nil, tooManyForSomethingInFront},
		{"figures", nil, figuresThatGrow},
		{"figures that are old", nil, figuresThatAreOld},
		{"figures of a server that hangs", nil, figuresThatDoNotCome},
		{"what if, by keyboard", nil, otherTiers},
		{"buttons that are busy", nil, busyButtons},
		{"a mailbox by its link, the last hour and refused emails", nil, mailboxByLink},
		{"storage that is away", awayStorage, storageAway},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t, tt.options)
			tt.test(t, newVisitor(t, browser), d)
		})
	}
}

// text is what an element says; empty where it is hidden.
func (tb *tab) text(id string) string {
	tb.t.Helper()
	return get[string](tb, fmt.Sprintf(`(e => e.checkVisibility() || e.className === "sr" ? e.textContent : "")(document.getElementById(%q))`, id))
}

func (tb *tab) reads(id, text string) {
	tb.t.Helper()
	last := ""
	defer func() {
		if tb.t.Failed() {
			tb.t.Logf("#%s says %q", id, last)
		}
	}()
	tb.until(fmt.Sprintf("#%s says %q", id, text), func() bool {
		last = tb.text(id)
		return strings.Contains(last, text)
	})
}

func (tb *tab) focused() string {
	tb.t.Helper()
	return get[string](tb, "document.activeElement.id")
}

func (tb *tab) types(id, text string) {
	tb.t.Helper()
	tb.run(fmt.Sprintf("document.getElementById(%q).select()", id))
	tb.do(chromedp.KeyEvent(text), chromedp.KeyEvent(kb.Enter))
}

// opens goes to the console and signs in.
func (tb *tab) opens(d *desk) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(d.URL + "/admin"))
	tb.reads("gate-title", "Sign in")
	tb.types("key", opsKey)
	tb.reads("mailbox-title", "Mailbox")
}

func signingIn(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	v.reads("announce", "Signed in.")
	if id := v.focused(); id != "email" {
		t.Errorf("the focus is on #%s", id)
	}
	if got := get[int](v, `document.cookie.length + localStorage.length + document.querySelector("#key").value.length`); got != 0 {
		t.Error("the key is kept where it should not be")
	}
	v.do(chromedp.Reload())
	v.reads("mailbox-title", "Mailbox")
	v.do(chromedp.Click(chromedp.CSS("#sign-out")))
	v.reads("gate-title", "Sign in")
	if got := get[int](v, `sessionStorage.length`); got != 0 {
		t.Error("the key is still there")
	}
	v.do(chromedp.Reload())
	v.reads("gate-title", "Sign in")
	other := v.another()
	other.do(chromedp.Navigate(d.URL + "/admin"))
	other.reads("gate-title", "Sign in")
}

func wrongKeys(t *testing.T, v *tab, d *desk) {
	v.do(chromedp.Navigate(d.URL + "/admin"))
	v.reads("gate-title", "Sign in")
	for _, tt := range []struct{ key, note string }{
		{"", "Type a key."}, {"two words", "no spaces"}, {"ключ", "no spaces"},
	} {
		v.types("key", tt.key)
		v.reads("sign-in-note", tt.note)
	}
	for _, key := range []string{"no-such-key", appKey} {
		v.types("key", key)
		v.reads("sign-in-note", "This is not an admin key.")
		v.forgive() // the browser itself reports a 401
		if id := v.focused(); id != "key" || get[int](v, "sessionStorage.length") != 0 {
			t.Errorf("the focus is on #%s, or the key is kept", id)
		}
		v.run(`document.getElementById("sign-in-note").textContent = ""`)
	}
}

func noKeyAskedFor(t *testing.T, v *tab, d *desk) {
	v.do(chromedp.Navigate(d.URL + "/admin"))
	v.reads("mailbox-title", "Mailbox")
	v.reads("store-pill", "storage ready")
	if v.text("sign-out") != "" {
		t.Error("there is a way out, where there was none in")
	}
}

func aMailbox(t *testing.T, v *tab, d *desk) {
	began := time.Now()
	d.sent("carol@example.com", 5*time.Hour, 40*time.Minute, 20*time.Minute, 20*time.Second)
	v.opens(d)
	v.types("email", "Carol+x@example.com")
	v.reads("found-title", "Carol+x@example.com")
	v.reads("found-why", "Minute limit reached. Next email at ")
	v.reads("announce", "Carol+x@example.com: Minute limit reached. Next email in ")
	if id := v.focused(); id != "found-title" {
		t.Errorf("the focus is on #%s", id)
	}
	lanes := get[[]string](v, `[...document.querySelectorAll("#lanes li")].map(li => [li.className, ...[...li.querySelectorAll("strong, span")].map(e => e.textContent), li.querySelector("svg").getAttribute("aria-label"), [...li.querySelectorAll(".send")].reduce((sum, dot) => sum + Number(dot.dataset.emails), 0), li.querySelectorAll(".blocks").length].join(" | "))`)
	want := []string{
		"full | minute · 1 in 60 s | opens in 0:", "| hour · 5 in 1 h | 2 left | 3 of 5 emails in the last 1 h | 3 | 0", "| day · 10 in 24 h | 6 left | 4 of 10 emails in the last 24 h | 4 | 0",
	}
	if len(lanes) != 3 {
		t.Fatalf("lanes %q", lanes)
	}
	for i := range want {
		if !strings.Contains(lanes[i], want[i]) {
			t.Errorf("lane %q, want %q", lanes[i], want[i])
		}
	}
	if !strings.HasSuffix(lanes[0], "| 1 | 1") {
		t.Errorf("nothing blocks in %q", lanes[0])
	}
	if rows := get[int](v, `document.querySelectorAll("#sends tr").length`); rows != 4 {
		t.Errorf("%d sends are listed", rows)
	}
	v.reads("found-guesses", "5 of 5 code attempts left.")
	first := v.text("found-pill")
	v.until("the countdown goes on", func() bool { return v.text("found-pill") < first })
	// 20 s ago is two thirds of the way from the left end to now, and as time passes it goes left.
	x := get[float64](v, `((dot, lane) => 100 * (dot.getAttribute("cx") - 11) / (lane.clientWidth - 22))(document.querySelector("#lanes .blocks"), document.querySelector("#lanes svg"))`)
	if least := (39 - time.Since(began).Seconds()) / 60 * 100; x < least || x > 67 {
		t.Errorf("the mail is drawn at %v %%", x)
	}
}

// Letters of twice the size stay below the lane that they are about, and in its picture.
func aMailboxInLargeLetters(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	v.types("email", "carol@example.com")
	v.reads("found-title", "carol@example.com")
	for _, size := range []string{"100%", "200%"} {
		v.run(fmt.Sprintf(`document.documentElement.style.fontSize = %q`, size))
		room := get[[]float64](v, `[...document.querySelectorAll("#lanes svg")].flatMap((lane) => {
			const box = (element) => element.getBoundingClientRect();
			return [...lane.querySelectorAll("text:not(.many)")].flatMap((text) => [box(text).top - box(lane.querySelector(".band")).bottom, box(lane).bottom - box(text).bottom]);
		})`)
		if len(room) != 12 || slices.Min(room) < 0 {
			t.Errorf("at %s the words have %.1f px above and below them", size, room)
		}
	}
}

func aMailboxForgotten(t *testing.T, v *tab, d *desk) {
	d.mailed("dave@example.com", 2*time.Minute)
	d.sent("dave@example.com", 20*time.Second)
	d.guessed("dave@example.com", 2)
	v.opens(d)
	v.types("email", "dave@example.com")
	v.reads("sends-title", "2 emails on record")
	v.reads("found-guesses", "3 of 5 code attempts left.")
	if d.guessed("dave@example.com", 4) != 429 {
		t.Error("there are guesses left")
	}
	v.types("email", "dave@example.com")
	v.reads("found-guesses", "No code attempts left. Next one in ")
	v.types("reason", "ticket 4711")
	v.reads("confirm-text", "2 emails and the code attempts of dave@example.com")
	if id := v.focused(); id != "keep" {
		t.Errorf("the focus is on #%s", id)
	}
	v.do(chromedp.KeyEvent(kb.Escape))
	v.until("the question is gone", func() bool { return v.text("confirm-text") == "" })
	v.reads("sends-title", "2 emails on record")
	v.types("reason", "ticket 4711")
	v.reads("confirm-text", "2 emails and the code attempts of dave@example.com")
	v.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	v.reads("found-pill", "ready")
	v.reads("sends-title", "0 emails on record")
	v.reads("announce", "dave@example.com was reset: 2 emails and 5 code attempts removed.")
	v.reads("found-guesses", "5 of 5 code attempts left.")
	// The look knows no caller, no visitor and no template, so it must not promise for their rules.
	v.types("email", "dave@example.com")
	v.reads("announce", "dave@example.com: No limit reached. Rules by API key, visitor or template are not checked here.")
	v.reads("found-why", "No limit reached. Rules by API key, visitor or template are not checked here.")
}

func wrongAddresses(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	v.types("email", "")
	v.reads("look-note", "Type an address.")
	v.types("email", "nobody")
	v.reads("look-note", "The address has no @.")
	v.forgive()
	if v.text("found") != "" {
		t.Error("something was found")
	}
}

func aFailingStore(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	d.broken.Store(true)
	v.types("email", "erin@example.com")
	v.reads("look-note", "The records cannot be read now. Try again shortly.")
	v.forgive()
	d.broken.Store(false)
	v.types("email", "erin@example.com")
	v.reads("found-pill", "ready")
	if note := v.text("look-note"); note != "" {
		t.Errorf("it still says %q", note)
	}
}

// oneLookup lets an operator look once in ten minutes, of which none pass while the page asks.
func oneLookup(t *testing.T) func(*api.Options) {
	bucket := must(throttle.NewTokenBucket(throttle.Tier{Name: "slow", Limit: 1, Window: 10 * time.Minute}, 1))(t)
	now := func() int64 { return 1 }
	store := must(cache.Open(cache.Options{Now: now}))(t)
	return func(o *api.Options) { o.Lookups = local.New(store.Table("lookups"), bucket, now) }
}

func tooManyLookups(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	v.types("email", "frank@example.com")
	v.reads("found-pill", "ready")
	v.types("email", "frank@example.com")
	v.reads("look-note", "Too many lookups.")
	v.reads("look-wait", "Try again in ")
	v.reads("announce", "Try again in 10 minutes")
	v.forgive()
	// An alert is read aloud whenever it is written.
	v.run(`window.alerted = document.getElementById("look-note").firstChild`)
	shown := v.text("look-wait")
	v.until("the wait goes on", func() bool { return v.text("look-wait") != shown })
	if !get[bool](v, "alerted.isConnected") || strings.Contains(v.text("look-note"), ":") {
		t.Errorf("the alert says again: %q", v.text("look-note"))
	}
	if v.text("found") != "" {
		t.Error("the old answer is still there")
	}
	v.run("email.value = ''")
	v.types("email", "")
	v.reads("look-note", "Type an address.")
	if note := v.text("look-wait"); note != "" {
		t.Errorf("it still says %q", note)
	}
}

// What stands in front of mailgate may refuse as well, and does not say for how long.
func tooManyForSomethingInFront(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	v.run(holdAnswer("/frank%40example.com", `{ status: 429, json: async () => ({ title: "Too many requests." }) }`))
	v.types("email", "frank@example.com")
	v.run("letGo()")
	v.reads("look-note", "Too many requests.")
	if said := v.text("look-wait") + v.text("announce"); strings.Contains(said, "NaN") {
		t.Errorf("it says %q", said)
	}
}

func figuresThatGrow(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	v.reads("numbers", "Sent0")
	v.reads("refusals", "none yet")
	for range 3 {
		d.ask(`{"email":"grace@example.com"}`)
	}
	v.reads("numbers", "Sent1Refused2")
	v.reads("refusals", "mailboxminute2")
	v.reads("relay-pill", "relay ready")
	// A key that comes again, with its body or another, is no failure.
	d.once("a-click", "judy@example.com", 200)
	d.once("a-click", "judy@example.com", 200)
	d.once("a-click", "mallory@example.com", 422)
	d.ask(`{"email":"grace@example.com"}`)
	v.reads("numbers", "Refused3")
	v.reads("numbers", "Sent2Refused3Failed0")
	d.box.Close()
	d.once("another-click", "kim@example.com", 503)
	v.reads("numbers", "Sent2Refused3Failed1")
}

// What cannot be asked is said once, as an alert is read aloud whenever it is written.
func figuresThatAreOld(t *testing.T, v *tab, d *desk) {
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: timeMachine})
	v.opens(d)
	v.reads("numbers", "Sent0")
	v.offline(true)
	v.until("it says that they are old", func() bool {
		v.pass(2000)
		return v.text("figures-note") == "No answer from the server. These figures are out of date."
	})
	v.run(`(() => {
		window.alerted = document.getElementById("figures-note").firstChild;
		window.asked = 0;
		const ask = window.fetch;
		window.fetch = (...all) => { asked++; return ask(...all); };
	})()`)
	v.until("it has asked again, and had its answer", func() bool {
		v.pass(2000)
		return get[int](v, "asked") > 1
	})
	if !get[bool](v, "alerted.isConnected") {
		t.Error("the alert is written again")
	}
	v.offline(false)
	v.until("they are of now", func() bool {
		v.pass(2000)
		return v.text("figures-note") == ""
	})
	v.forgive()
}

// A server that says nothing is asked no longer than its answer is of use.
func figuresThatDoNotCome(t *testing.T, v *tab, d *desk) {
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: timeMachine})
	v.opens(d)
	v.reads("numbers", "Sent0")
	v.run(`window.fetch = (path, { signal }) => new Promise((_, fail) => {
		window.hangs = true;
		signal?.addEventListener("abort", () => fail(signal.reason));
	})`)
	v.until("it asks", func() bool {
		v.pass(2000)
		return get[bool](v, "window.hangs === true")
	})
	v.pass(20_000)
	v.reads("figures-note", "No answer from the server. These figures are out of date.")
}

func otherTiers(t *testing.T, v *tab, d *desk) {
	d.sent("heidi@example.com", 3*time.Hour, 2*time.Hour, time.Hour)
	d.sent("ivan@example.com", time.Hour)
	v.opens(d)
	v.types("tiers", "hour=0/1h")
	v.reads("try-note", "Tier hour: the limit must be between 1 and 1000, not 0.")
	v.forgive()
	v.types("tiers", "pause=1/90m,day=2/24h")
	v.reads("tried-sum", "2 mailboxes, 4 emails: 1 refused in 1 mailbox.")
	v.reads("tried-tiers", "minute1 in 60 snonehour5 in 1 hnoneday10 in 24 h2 in 24 h0pausenone1 in 90 min1")
	v.reads("announce", "1 refused in 1 mailbox")
	if note := v.text("try-note"); note != "" {
		t.Errorf("it still says %q", note)
	}
	v.do(chromedp.Click(chromedp.CSS("#sign-out")))
	v.reads("gate-title", "Sign in")
	if got := get[string](v, `document.getElementById("tiers").value + document.getElementById("tried-sum").textContent`); got != "" {
		t.Errorf("after signing out there is %q", got)
	}
}

// ask sends POST /send-code, whatever the answer.
func (d *desk) ask(body string) { d.t.Helper(); d.post("/send-code", body) }

// once has a code mailed under an Idempotency-Key.
func (d *desk) once(key, email string, want int) {
	d.t.Helper()
	if status := d.post("/send-code", `{"email":"`+email+`"}`, "Idempotency-Key", `"`+key+`"`); status != want {
		d.t.Errorf("under the key %q: %d, want %d", key, status, want)
	}
}
