package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mailgate/mailgate/api"
)

// apart lists the dots of the lanes that overlap another or leave their band.
const apart = `[...document.querySelectorAll(".lanes svg")].flatMap((lane) => {
	const band = lane.querySelector(".band").getBoundingClientRect();
	const dots = [...lane.querySelectorAll(".send")].map((dot) => dot.getBoundingClientRect());
	return dots.filter((dot, i) => dot.left < band.left || dot.right > band.right || (i > 0 && dot.left < dots[i - 1].right)).map((dot) => dot.left);
})`

// A link opens a mailbox after signing in. The page shows the last hour at once, and its dots
// are apart.
func mailboxByLink(t *testing.T, v *tab, d *desk) {
	d.sent("carol@example.com", 23*time.Hour+59*time.Minute, 3*time.Hour, 2*time.Hour, 59*time.Minute, 40*time.Minute, 38*time.Minute, 20*time.Second)
	d.sent("dave@example.com", 2*time.Hour, time.Hour)
	const burst = 12
	for i := range burst {
		d.ask(fmt.Sprintf(`{"email":"burst%d@example.com"}`, i))
	}
	v.do(chromedp.Navigate(d.URL + "/admin?email=carol%40example.com"))
	v.reads("gate-title", "Sign in")
	v.types("key", opsKey)
	v.reads("found-title", "carol@example.com")
	if url := get[string](v, "location.href"); strings.Contains(url, "carol") {
		t.Errorf("the next operator sees %s", url)
	}
	v.reads("sent-rate", fmt.Sprint(burst))
	if got := get[string](v, `document.getElementById("figures-title").textContent + document.querySelector(".plot").textContent.trim() + document.querySelector(".axis").textContent + document.querySelector("polyline").points.length`); got != fmt.Sprintf("Last hour%d060 min agonow181", burst) {
		t.Errorf("the chart says %q", got)
	}
	if wrong := get[[]float64](v, apart); len(wrong) > 0 {
		t.Errorf("dots that overlap or leave their lane: %v", wrong)
	}

	v.types("tiers", "minute=1/60s,hour=1/1h")
	v.reads("found-tried", "3 emails of this mailbox would have been refused by minute=1/60s,hour=1/1h.")
	v.reads("tried-tiers", "hour5 in 1 h1 in 1 h3")
	if got := get[string](v, `[document.querySelectorAll("#lanes .refused").length > 0, document.querySelectorAll("#worst li").length, document.querySelectorAll("#worst .refused").length > 0].join()`); got != "true,1,true" {
		t.Errorf("refused emails are drawn: %s", got)
	}
	if wrong := get[[]float64](v, apart); len(wrong) > 0 {
		t.Errorf("dots that overlap or leave their lane: %v", wrong)
	}

	v.run(`reason.value = "asked by carol"`)
	v.types("email", "carol@example.com")
	v.reads("announce", "carol@example.com: Minute")
	if got := get[string](v, "reason.value"); got != "asked by carol" {
		t.Errorf("a second look at the same mailbox changes the reason to %q", got)
	}
	v.types("email", "dave@example.com")
	v.reads("found-title", "dave@example.com")
	if got := get[string](v, "reason.value"); got != "" {
		t.Errorf("the reason for another mailbox is still %q", got)
	}
}

// awayStorage is a server that works without its shared storage.
func awayStorage(o *api.Options) { o.DegradedSince = func() int64 { return 1_800_000_000_000 } }

func storageAway(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	v.reads("store-pill", "storage away since ")
	if got := get[string](v, `document.getElementById("store-pill").className`); got != "pill wait" {
		t.Errorf("the pill is %q", got)
	}
}
