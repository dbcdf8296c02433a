package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/nodes"
	"github.com/mailgate/mailgate/internal/recent"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
)

// signsIn opens the console.
func (tb *tab) signsIn(s *server) {
	tb.t.Helper()
	tb.visit(s.URL + "/admin")
	tb.reads("sign-in-title", "Sign in")
	tb.enters("key", apitest.AdminKey)
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
	t.Parallel()
	inEachBrowser(t, consoleSignInKeepsTheKeyForTheTab)
}

func consoleSignInKeepsTheKeyForTheTab(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	v.visit(s.URL + "/admin")
	for _, tt := range [][2]string{{"", "Type a key."}, {"two words", "no spaces"}, {"ключ", "no spaces"}, {apitest.APIKey, "This is not an admin key."}} {
		v.enters("key", tt[0])
		v.reads("sign-in-note", tt[1])
	}
	v.is("document.activeElement.id + sessionStorage.length", "key0")
	v.looksRight("console-signed-out")
	v.enters("key", apitest.AdminKey)
	v.reads("announce", "Signed in.")
	v.hasFocus("email")
	v.is("document.cookie.length + localStorage.length + key.value.length", "0")
	v.reads("store-pill", "storage ready")
	v.reload()
	v.reads("mailbox-title", "Mailbox")
	v.looksUp("alice@example.com")
	v.is(`/^#mailbox=[0-9a-f]{10}$/.test(location.hash) + location.search`, "true")
	v.reload()
	v.reads("found-title", "alice@example.com")
	v.reads("numbers", "Sent")
	v.click("#sign-out")
	v.reads("sign-in-title", "Sign in")
	v.is("sessionStorage.length + location.hash", "0")
	v.is(`["numbers", "refusals", "since", "store-pill", "sent-rate", "found-title", "timeline"].map((id) => document.getElementById(id).textContent).join("") + document.querySelectorAll(".charts svg > *").length`, "0")
}

func TestConsole_Mailbox_LooksRight(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, func(_ *apitest.Server, o *apitest.Options) {
		o.TryRules = func(now func() int64, _ *throttle.Policy) (*rules.Set, func(), error) {
			own := must.Get(cache.Open(cache.Options{Now: now}))(t)
			limiter := func(table string) *throttle.Limiter {
				return local.New(own.Table(table), must.Get(throttle.ParsePolicy("day=1/24h"))(t))
			}
			set, err := rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: limiter("mailboxes")},
				rules.Rule{Name: "company", By: rules.ByDomain, Limiter: limiter("companies"), Shadow: true}, rules.Rule{Name: "everybody", By: rules.ByAll, Limiter: limiter("all")})
			return set, func() { _ = own.Close() }, err
		}
	}), newVisitor(t)
	s.sendCode("alice@example.com")
	s.sendCode("bob@example.com")
	s.sent("carol@example.com", 20*time.Hour, 40*time.Minute, 30*time.Minute, 20*time.Minute, 10*time.Minute, 20*time.Second)
	s.sendCode("carol@example.com")
	v.signsIn(s)
	v.reads("refusals", "mailboxhour1")
	v.looksUp("carol@example.com")
	v.looksRight("console-mailbox", "#found-pill", "#reset", ".lanes .band", ".lanes .edge", ".lanes .send")
	v.click("#try-now") // with the rules as they are
	v.reads("tried-sum", "2 emails: 1 refused, to 1 mailbox for 0 visitors; 0 asked for a challenge.")
	v.reads("tried-rules", "everybody1")
	v.is("tiers.value", "")
	v.enters("reason", "ticket 4711")
	v.reads("confirm-text", "6 emails")
	v.looksRight("console-reset")
	v.click("#keep")
	v.enters("tiers", "minute=1/2m,hour=2/1h,day=3/24h")
	v.reads("tried-sum", " refused, to ")
	v.looksRight("console-what-if")
}

func TestConsole_NoKeysSet_AsksForNone(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, func(_ *apitest.Server, o *apitest.Options) {
		o.Access.APIKeys, o.Access.AdminKeys = apikey.Keys{}, apikey.Keys{}
	}), newVisitor(t, withoutStorage)
	v.visit(s.URL + "/admin")
	v.reads("store-pill", "storage ready")
	v.is(`document.getElementById("sign-out").hidden`, "true")
}

// One operator's story, with the mailboxes in Redis: look a mailbox up, see its lanes, try
// other tiers, and reset it by keyboard.
func TestConsole_OnRedis_LooksUpTriesAndResets(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, consoleOnRedisLooksUpTriesAndResets)
}

func consoleOnRedisLooksUpTriesAndResets(t *testing.T, newVisitor opener) {
	s, _ := newServerOnRedis(t, nil)
	v := newVisitor(t)
	s.sent("carol@example.com", 23*time.Hour+59*time.Minute, 3*time.Hour, 2*time.Hour, 59*time.Minute, 40*time.Minute, 38*time.Minute, 20*time.Second)
	v.visit(s.URL + "/admin#email=Carol%2Bx%40example.com") // a link opens a mailbox after signing in
	v.enters("key", apitest.AdminKey)
	v.reads("found-title", "Carol+x@example.com")
	v.hasFocus("found-title")
	v.is(`/^#mailbox=[0-9a-f]{10}$/.test(location.hash)`, "true")
	v.reads("announce", "Carol+x@example.com: Minute limit reached. Next email in ")
	v.reads("found-why", "Minute limit reached. Next email at ")
	v.reads("found-guesses", "5 of 5 guesses at codes left.")
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

	v.types("tiers", "minute=1/60s,hour=1/1h")
	v.staysBusy("#try-now")
	v.reads("tried-sum", "0 emails: 0 refused, to 0 mailboxes for 0 visitors; 0 asked for a challenge.")
	v.enters("email", "alice@example.com")
	v.reads("found-title", "alice@example.com")
	v.looksUp("Carol+x@example.com")
	v.is(crowded, "")

	v.enters("reason", "ticket 4711")
	v.reads("confirm-text", "Removes 7 emails and the guesses at codes of Carol+x@example.com")
	v.hasFocus("keep")
	v.press(kb.Escape)
	v.isTrue("!confirm.open")
	v.reads("sends-title", "7 emails on record")
	v.run("reason.focus()")
	v.press(kb.Enter, kb.Tab, kb.Enter)
	v.reads("announce", "Carol+x@example.com was reset: 7 emails and 0 guesses removed.")
	v.reads("found-pill", "ready")
	v.reads("sends-title", "0 emails on record")
	v.reads("found-why", "No limit reached. Rules by api_key, client_ip, purpose or template are not checked here.")
	if _, answer := s.post("/send-code", `{"email":"carol@example.com"}`); !strings.Contains(answer, `"sent"`) {
		t.Errorf("after the reset: %s", answer)
	}
}

// A reset concerns the mailbox in its question. Another that is looked up meanwhile stays on
// the page, and has a reason of its own.
func TestConsole_AnotherMailboxMeanwhile_IsNotReset(t *testing.T) {
	t.Parallel()
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
	v.reads("confirm-text", "1 email and the guesses at codes of alice@example.com")
	v.reads("found-title", "alice@example.com")
	v.run(holdAnswers)
	v.click("#reset-now")
	v.isTrue("asked === 1")
	v.run("window.fetch = asking")
	v.looksUp("bob@example.com")
	v.is("reason.value", "")
	v.types("reason", "asked by bob")
	get[bool](v, "letGo()")
	v.reads("announce", "alice@example.com was reset: 1 email and 0 guesses removed.")
	v.is(`[document.getElementById("found-title").textContent, reason.value, document.getElementById("sends-title").textContent].join()`, "bob@example.com,asked by bob,1 email on record")
	v.looksUp("alice@example.com")
	v.reads("sends-title", "0 emails on record")
}

// The last hour and the totals are of the server, so they are there at once.
func TestConsole_Figures_ShowTheLastHour(t *testing.T) {
	t.Parallel()
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
	s.Relay.Close()
	s.sendCode("late@example.com")
	v.reads("numbers", fmt.Sprintf("Sent%dRefused1Failed1", burst))
}

// What fails says so beside what was asked, with the mailbox that it concerns. Here Redis dies, no
// node decides alone, and then the network is lost.
func TestConsole_Failures_AreExplained(t *testing.T) {
	t.Parallel()
	bucket := must.Have(throttle.NewTokenBucket(throttle.Tier{Name: "slow", Limit: 4, Window: 10 * time.Minute}, 6))
	stopped := func() int64 { return 1 }
	store := must.Have(cache.Open(cache.Options{Now: stopped}))
	t.Cleanup(func() { store.Close() })
	s, redis := newServerOnRedis(t, func(o *apitest.Options) {
		o.RateLimits.Lookups = local.New(store.Table("lookups"), bucket)
		o.Health.Degraded = func() (int64, int) { return 1_800_000_000_000, 0 }
	})
	v := newVisitor(t)
	v.signsIn(s)
	v.reads("store-pill", "storage away since ")
	v.enters("email", "erin")
	v.reads("look-note", "The address has no @.")
	v.looksUp("erin@example.com")
	v.enters("tiers", "hour=1/1h")
	v.reads("tried-sum", "0 emails: 0 refused")
	v.enters("tiers", "hour=0/1h")
	v.reads("try-note", "Tier hour: the limit must be between 1 and 1000, not 0.")
	v.is(`document.getElementById("tried").hidden`, "true")

	redis.Kill()
	v.click("#ask-reset")
	v.click("#reset-now")
	v.reads("look-note", "erin@example.com: The reset may be incomplete. Repeat it when the storage is available again")
	v.offline(true)
	v.click("#ask-reset")
	v.click("#reset-now")
	v.reads("look-note", "erin@example.com: No answer. The reset may or may not be done.")
	v.reads("figures-note", "Disconnected, retrying. These figures are out of date.")
	v.is(`[...document.querySelectorAll(".pill.good")].filter((one) => one.checkVisibility()).length`, "0")
	v.looksRight("console-lost")
	v.offline(false)
	v.complains("ERR_INTERNET_DISCONNECTED")
	v.reads("store-pill", "storage ")
	v.enters("email", "frank@example.com")
	v.reads("look-note", "The storage cannot be read or written now. Try again shortly.")
	v.enters("email", "erin@example.com")
	v.reads("look-wait", "Try again in 2:")
	v.reads("announce", "Try again in 2 minutes 30 seconds")
	v.run(`sessionStorage.setItem("mailgate-admin-key", "revoked")`)
	v.reads("sign-in-note", "This key is no longer valid.")
	v.is(`[found.hidden, document.getElementById("look-note").textContent, document.getElementById("email").value].join()`, "true,,")
}

// Why did Alice not get her code: her requests are beside her mailbox, live, and found by what operators
// know.
func TestConsole_Requests_ShowWhyThereIsNoCode(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	s.sendCode("alice@example.com")
	s.post("/send-code", `{"email":"bob@example.com","client_ip":"203.0.113.7"}`)
	s.post("/send-code", `{"email":"bob@example.com","client_ip":"203.0.113.7"}`)
	v.signsIn(s)
	v.reads("requests-pill", "live")
	v.is(`document.querySelectorAll("#requests tr").length`, "3")
	v.reads("most-refused", "Visitor203.0.113.71")
	v.looksRight("console-requests", "#find-whose")

	v.looksUp("alice@example.com")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 1`)
	s.sendCode("alice@example.com") // shows by itself
	v.reads("requests", "quota-exceeded")
	v.isTrue(`/mailbox: minute · wait [01]:\d\d/.test(document.getElementById("requests").textContent)`)
	v.is(`/\d ms/.test(document.getElementById("requests").textContent)`, "false")
	v.size(390, 844)
	v.isTrue(`[...document.querySelectorAll("#requests tr")].every((line) => line.children[4].getBoundingClientRect().right <= innerWidth)`)
	v.size(1280, 800)
	v.enters("find-whose", "Bob+x@example.com")
	v.reads("requests", "shop · http · 203.0.113.7")
	v.chooses("find-outcome", "sent")
	v.reads("requests", "250 2.0.0 OK: queued")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 1`)
	v.click("#requests td:nth-child(3) button")
	v.reads("found-title", "Bob+x@example.com")
	v.click("#copy-curl")
	v.isTrue(`/^(Copied\.|)$/.test(document.getElementById("announce").textContent) || document.getElementById("find-note").textContent.startsWith("curl -s")`)
	v.click("#other-log")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 0`)
	s.postAs(apitest.AdminKey, "/admin/mailboxes/alice@example.com/reset", `{"reason":"ticket 4711"}`) // not the one looked up
	v.reads("requests", "mailbox reset")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 1`)
	v.looksRight("console-audit", "#other-log")
	v.click("#other-log")
	v.enters("find-whose", "bob@")
	v.reads("find-note", "Nothing is after the @.")
	v.reads("requests-pill", "stopped")
	v.enters("find-whose", "")
	v.reads("requests-pill", "live")
	if err := s.front.Config.Close(); err != nil {
		t.Error(err)
	}
	v.reads("requests-pill", "Disconnected")
	v.complains("ERR_")
}

// Where nodes share a Redis, the console shows the state of each, and what each did.
func TestConsole_SeveralNodes_StateAndRequests(t *testing.T) {
	t.Parallel()
	redis := redistest.Alone(t)
	node := func(name string, own *recent.Log) *nodes.Nodes {
		return nodes.New(nodes.Options{Client: redis.Client(), Prefix: "test", Name: name, Own: own, Audited: new(recent.Log), Metrics: prometheus.NewRegistry(),
			Now: func() int64 { return time.Now().UnixMilli() }})
	}
	own, other := new(recent.Log), new(recent.Log)
	here, there := node("web-1:8080", own), node("web-2:8080", other)
	s := newServer(t, func(_ *apitest.Server, o *apitest.Options) { o.Nodes = here })
	own.Add(time.Now().UnixMilli(), []byte(`,"door":"http","key":"shop","outcome":"sent","mailbox":"0862140cc9","reply":"250 2.0.0 OK: queued"`))
	for range 40 {
		other.Add(time.Now().UnixMilli(), []byte(`,"door":"smtp","key":"shop","outcome":"quota-exceeded","mailbox":"0862140cc9","rule":"mailbox","limit":"minute","wait_ms":41000`))
	}
	other.Add(time.Now().UnixMilli(), []byte(`,"door":"http","key":"shop","outcome":"unavailable","cause":"the relay refuses connections"`))
	figures := string(s.Server.API.Figures())
	must.OK(t, here.Tell(t.Context(), []byte(figures)))
	must.OK(t, there.Tell(t.Context(), []byte(strings.Replace(figures, `"node":"web-1:8080"`, `"node":"web-2:8080"`, 1))))
	ended := strings.Replace(figures, `"node":"web-1:8080"`, `"node":"web-3:8080"`, 1)
	ended = strings.Replace(ended, `"relays_failing":0`, `"relays_failing":2`, 1)
	must.OK(t, redis.Client().HSet(t.Context(), "test:nodes", "web-3:8080", fmt.Sprintf("%d %s", time.Now().Add(-time.Hour).UnixMilli(), ended)).Err())
	v := newVisitor(t)
	v.signsIn(s)
	v.reads("requests-pill", "live, all nodes")
	v.reads("requests", "quota-exceeded ×40")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 3`)
	v.isTrue(`document.querySelectorAll("#nodes tr").length === 3`)
	v.is(`[...document.querySelectorAll("#nodes tr")].map((row) => row.children[0].textContent + " " + row.children[1].textContent.slice(0, 10)).join()`, "web-1:8080 ready,web-2:8080 ready,web-3:8080 away since")
	v.reads("most-refused", "Mailbox0862140cc940")
	v.looksRight("console-nodes", "#find-whose")

	// What a node tells later than others has its place by its time.
	at := time.Now().UnixMilli()
	other.Add(at, []byte(`,"outcome":"second"`))
	must.OK(t, there.Tell(t.Context(), nil))
	v.reads("requests", "second")
	own.Add(at-500, []byte(`,"outcome":"first"`))
	must.OK(t, here.Tell(t.Context(), nil))
	v.reads("requests", "first")
	v.is(`[...document.querySelectorAll("#requests tr")].slice(0, 2).map((row) => row.children[1].textContent).join()`, "second,first")

	v.chooses("find-node", "web-2:8080")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 3`)
	redis.Kill()
	v.reads("requests-pill", "live, this node")
	v.reads("nodes-note", "Redis is away")
}
