package web_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

// timeMachine replaces a page's clocks and timers, so that minutes pass at once and both
// clocks can go wrong.
//
//go:embed testdata/timemachine.js
var timeMachine string

// withoutStorage is what a browser does that blocks all cookies.
const withoutStorage = `for (const name of ["sessionStorage", "localStorage"]) {
	if (location.protocol.startsWith("http")) Object.defineProperty(window, name, { get() { throw new DOMException("no", "SecurityError"); } });
}`

// headlessChromium is Chromium without what draws a window, which takes two thirds of the processor time.
const headlessChromium = "chromium-headless-shell"

// startBrowser starts the Chromium that all tests share.
var startBrowser = sync.OnceValue(func() context.Context {
	program, _ := need.Find(headlessChromium)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("hide-scrollbars", false))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's own does not work for root
	}
	var ctx context.Context
	ctx, stopBrowser = chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ = chromedp.NewContext(ctx)
	must.Have(0, chromedp.Do(ctx))
	return ctx
})

var stopBrowser = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	stopBrowser()
	stopFirefox()
	os.Exit(code)
}

// A driver does in one tab of a browser what a visitor does.
type driver interface {
	visit(url string) error
	reload() error
	click(selector string) error
	press(keys string) error
	// evaluate returns the text that an expression in the page has or promises.
	evaluate(expression string) (string, error)
}

// An opener opens a tab of a new visitor.
type opener func(t *testing.T, scripts ...string) *tab

// oneInFirefox holds the flow that has Firefox, which draws only the tab in front.
var oneInFirefox sync.Mutex

// inEachBrowser runs a flow in Chromium and, in make firefox and make long, in Firefox.
func inEachBrowser(t *testing.T, flow func(t *testing.T, newVisitor opener)) {
	t.Run("chromium", func(t *testing.T) {
		t.Parallel()
		flow(t, newVisitor)
	})
	t.Run("firefox", func(t *testing.T) {
		need.Long(t)
		t.Parallel()
		oneInFirefox.Lock()
		defer oneInFirefox.Unlock()
		flow(t, newFirefoxVisitor)
	})
}

// A tab is one page of a visitor. A complaint of the browser, such as one about the page's
// policy, fails the test, unless it was expected.
type tab struct {
	driver
	t   *testing.T
	ctx context.Context // of chromedp; nil in Firefox

	mu         sync.Mutex
	complaints []string
}

// newVisitor opens a tab with cookies and storage of its own. The scripts run in each page
// before its own do.
func newVisitor(t *testing.T, scripts ...string) *tab {
	t.Helper()
	need.Program(t, headlessChromium)
	return openTab(t, startBrowser(), scripts, chromedp.WithNewBrowserContext())
}

// another opens a second tab of the same visitor.
func (tb *tab) another(scripts ...string) *tab {
	tb.t.Helper()
	return openTab(tb.t, tb.ctx, scripts)
}

func openTab(t *testing.T, parent context.Context, scripts []string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(parent, options...)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	tb := &tab{t: t, ctx: ctx, driver: chromium{ctx}}
	if err := chromedp.Listen(ctx, tb.hear); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	for _, script := range scripts {
		call(tb, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	}
	tb.checkComplaints()
	return tb
}

// A chromium is the driver of a tab in Chromium.
type chromium struct{ ctx context.Context }

func (c chromium) visit(url string) error { return chromedp.Do(c.ctx, chromedp.Navigate(url)) }
func (c chromium) reload() error          { return chromedp.Do(c.ctx, chromedp.Reload()) }
func (c chromium) press(keys string) error {
	return chromedp.Do(c.ctx, chromedp.KeyEvent(keys))
}
func (c chromium) click(selector string) error {
	return chromedp.Do(c.ctx, chromedp.Click(chromedp.CSS(selector)))
}
func (c chromium) evaluate(expression string) (string, error) {
	return chromedp.Run(c.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
}

// inFirefox reports whether the tab is one of Firefox, where colours, networks and pictures are not tested.
func (tb *tab) inFirefox() bool { return tb.ctx == nil }

// checkComplaints fails the test at its end if the browser has complained.
func (tb *tab) checkComplaints() {
	tb.t.Cleanup(func() {
		tb.mu.Lock()
		defer tb.mu.Unlock()
		for _, complaint := range tb.complaints {
			tb.t.Errorf("the browser complained: %s", complaint)
		}
	})
}

func (tb *tab) complain(text string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.complaints = append(tb.complaints, text)
}

var refusal = regexp.MustCompile(`responded with a status of (401|403|422|429|503)`)

func (tb *tab) hear(event any) {
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		tb.complain("exception: " + event.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		tb.complain(fmt.Sprintf("console.%s", event.Type))
	case *log.EventEntryAdded:
		if refusal.MatchString(event.Entry.Text) {
			return // the browser reports each answer that is an error
		}
		tb.complain(fmt.Sprintf("%s %s: %s %s", event.Entry.Source, event.Entry.Level, event.Entry.Text, event.Entry.URL))
	}
}

// complains waits for complaints with these texts, and forgives all.
func (tb *tab) complains(texts ...string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf("the browser complains: %q", texts), func() bool {
		tb.mu.Lock()
		defer tb.mu.Unlock()
		said := strings.Join(tb.complaints, "\n")
		for _, text := range texts {
			if !strings.Contains(said, text) {
				return false
			}
		}
		tb.complaints = nil
		return true
	})
}

// must ends the test if a step failed.
func (tb *tab) must(err error) {
	tb.t.Helper()
	if err != nil {
		tb.t.Fatal(err)
	}
}

func (tb *tab) visit(url string)      { tb.t.Helper(); tb.must(tb.driver.visit(url)) }
func (tb *tab) reload()               { tb.t.Helper(); tb.must(tb.driver.reload()) }
func (tb *tab) click(selector string) { tb.t.Helper(); tb.must(tb.driver.click(selector)) }
func (tb *tab) press(keys ...string) {
	tb.t.Helper()
	for _, key := range keys {
		tb.must(tb.driver.press(key))
	}
}

// types replaces the text of a field; enters presses Enter after it.
func (tb *tab) types(id, text string) {
	tb.t.Helper()
	tb.run(fmt.Sprintf("document.getElementById(%q).select()", id))
	tb.press(kb.Delete)
	tb.press(text)
}

func (tb *tab) enters(id, text string) { tb.t.Helper(); tb.types(id, text); tb.press(kb.Enter) }

// run runs a script in the page.
func (tb *tab) run(script string) {
	tb.t.Helper()
	get[any](tb, "void ("+script+")")
}

// betweenPages is the error where there is no page to ask.
var betweenPages = regexp.MustCompile("navigated|Cannot find (default execution )?context|destroyed before|no such frame|Browsing context got discarded")

// get returns the value of an expression in the page.
func get[T any](tb *tab, expression string) (value T) {
	tb.t.Helper()
	for {
		text, err := tb.evaluate("Promise.resolve(" + expression + ").then((value) => JSON.stringify(value) ?? null + '')")
		if err == nil {
			tb.must(json.Unmarshal([]byte(text), &value))
			return value
		}
		if !betweenPages.MatchString(err.Error()) {
			tb.t.Fatalf("%s: %v", expression, err)
		}
	}
}

// call sends the browser a command about the tab.
func call[P, R any](tb *tab, command cdp.Command[P, R], params P) R {
	tb.t.Helper()
	result, err := chromedp.Call(tb.ctx, command, params)
	if err != nil {
		tb.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// until waits for a condition.
func (tb *tab) until(what string, holds func() bool) {
	tb.t.Helper()
	servertest.Eventually(tb.t, what, holds)
}

// isTrue waits for an expression in the page to become true.
func (tb *tab) isTrue(expression string) {
	tb.t.Helper()
	tb.until(expression, func() bool { return get[bool](tb, expression) })
}

// is checks the value of an expression in the page, as text.
func (tb *tab) is(expression, want string) {
	tb.t.Helper()
	if got := get[string](tb, "String("+expression+")"); got != want {
		tb.t.Errorf("%s is %q, want %q", expression, got, want)
	}
}

// text is what an element says; empty where it is hidden.
func (tb *tab) text(id string) string {
	tb.t.Helper()
	return get[string](tb, fmt.Sprintf(`(e => e && (e.checkVisibility() || e.className === "sr") ? e.textContent : "")(document.getElementById(%q))`, id))
}

// reads waits until an element says a text.
func (tb *tab) reads(id, text string) {
	tb.t.Helper()
	servertest.Await(tb.t, fmt.Sprintf("#%s to say %q", id, text), time.Minute, func() error {
		if said := tb.text(id); !strings.Contains(said, text) {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
}

func (tb *tab) hasFocus(id string) { tb.t.Helper(); tb.is("document.activeElement.id", id) }

// size sets the size of the window; a narrow one is a phone's.
func (tb *tab) size(width, height int64) {
	tb.t.Helper()
	if page, ok := tb.driver.(*firefoxTab); ok {
		tb.must(page.size(width, height))
		return
	}
	call(tb, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600,
	})
	tb.drawn()
}

// drawn waits for two frames.
func (tb *tab) drawn() {
	tb.t.Helper()
	get[bool](tb, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// offline takes the network away, or brings it back.
func (tb *tab) offline(away bool) {
	tb.t.Helper()
	conditions := &network.Conditions{Offline: away, DownloadThroughput: -1, UploadThroughput: -1}
	call(tb, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{conditions}})
	call(tb, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: away, DownloadThroughput: -1, UploadThroughput: -1})
}

// back goes back as the browser's button does, to a page with this expression.
func (tb *tab) back(arrived string) {
	tb.t.Helper()
	tb.evaluate("void history.back(), ''") // the page may go before it answers
	tb.isTrue(`document.readyState === "complete" && !!(` + arrived + `)`)
}

// holdAnswers keeps the answers of the server back until letGo() is called, which returns when
// the page has dealt with them. What a page asks by itself is let through.
const holdAnswers = `(() => {
	const ask = window.asking = window.fetch;
	const held = [];
	let open;
	const gate = new Promise((resolve) => { open = resolve; });
	window.asked = 0;
	window.fetch = (path, ...rest) => {
		if (path.startsWith("/demo/mails") || path.startsWith("/admin/requests") || (path === "/admin/figures" && !document.getElementById("signed-in").hidden)) return ask(path, ...rest);
		window.asked++;
		const answer = ask(path, ...rest).then(async (one) => {
			const body = await one.json();
			return { status: one.status, headers: one.headers, json: async () => body };
		});
		held.push(answer);
		return gate.then(() => answer);
	};
	window.letGo = async () => {
		window.fetch = ask;
		await Promise.all(held);
		open();
		return new Promise((done) => setTimeout(() => done(true)));
	};
})()`

// staysBusy clicks a button whose answer is held back: it keeps the focus, and a second click
// asks nothing.
func (tb *tab) staysBusy(selector string) {
	tb.t.Helper()
	tb.run(holdAnswers)
	tb.click(selector)
	tb.isTrue("asked === 1")
	tb.drawn() // the browser would take the focus from a disabled button here
	tb.click(selector)
	tb.is(fmt.Sprintf(`document.querySelector(%q).ariaBusy + " " + asked + " " + document.activeElement.matches(%[1]q)`, selector), "true 1 true")
	get[bool](tb, "letGo()")
	tb.isTrue(fmt.Sprintf(`(one => !one.disabled && !one.ariaBusy)(document.querySelector(%q))`, selector))
}
