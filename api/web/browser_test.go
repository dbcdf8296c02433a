package web_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

// patience is how long anything in the browser may take before the test gives up.
const patience = 15 * time.Second

// timeMachine takes the place of a page's clocks and timers, so that minutes pass in no
// time and both clocks can be made to misbehave.
//
//go:embed testdata/timemachine.js
var timeMachine string

// openBrowser starts the Chromium that the tabs of a test share; ways are how it differs from
// others.
func openBrowser(t *testing.T, ways ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	program := need.Program(t, "chromium")
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], ways, []chromedp.ExecAllocatorOption{chromedp.ExecPath(program)})
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's own refuses to work for root
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	return ctx
}

// A tab is one page of a visitor. What it complains about fails the test, unless it was
// forgiven.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	received   atomic.Int64 // bytes that came over the wire, headers included
}

// newVisitor opens a tab with cookies and storage of its own.
func newVisitor(t *testing.T, browser context.Context, setUp ...string) *tab {
	t.Helper()
	return openTab(t, browser, setUp, chromedp.WithNewBrowserContext())
}

// another opens a second tab of the same visitor.
func (tb *tab) another(setUp ...string) *tab {
	tb.t.Helper()
	return openTab(tb.t, tb.ctx, setUp)
}

func openTab(t *testing.T, parent context.Context, setUp []string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(parent, options...)
	t.Cleanup(stop)
	tb := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, tb.hear); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	for _, script := range setUp {
		call(tb, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	}
	t.Cleanup(tb.mustBeContent)
	return tb
}

// hear notes what the page has to complain about.
func (tb *tab) hear(event any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		tb.complaints = append(tb.complaints, "exception: "+event.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		tb.complaints = append(tb.complaints, fmt.Sprintf("console.%s", event.Type))
	case *log.EventEntryAdded:
		tb.complaints = append(tb.complaints, fmt.Sprintf("%s %s: %s %s", event.Entry.Source, event.Entry.Level, event.Entry.Text, event.Entry.URL))
	case *network.EventLoadingFinished:
		tb.received.Add(int64(event.EncodedDataLength))
	}
}

// forgive forgets the complaints so far, which must be some: the browser itself reports
// each request that fails.
func (tb *tab) forgive() {
	tb.t.Helper()
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if len(tb.complaints) == 0 {
		tb.t.Error("the browser did not complain, though a request must have failed")
	}
	tb.complaints = nil
}

// hasComplained says whether there is something to forgive.
func (tb *tab) hasComplained() bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return len(tb.complaints) > 0
}

func (tb *tab) mustBeContent() {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, complaint := range tb.complaints {
		tb.t.Errorf("the browser complained: %s", complaint)
	}
}

// do takes steps in the browser.
func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, stop := context.WithTimeout(tb.ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tb.t.Fatal(err)
	}
}

// run runs a script in the page.
func (tb *tab) run(script string) {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void]("void (" + script + ")"))
}

// get is the value of an expression in the page.
func get[T any](tb *tab, expression string) T {
	tb.t.Helper()
	ctx, stop := context.WithTimeout(tb.ctx, patience)
	defer stop()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	for err != nil && (strings.Contains(err.Error(), "navigated") || strings.Contains(err.Error(), "Cannot find default execution context")) {
		// The page that was asked has gone, or the next is not there yet.
		value, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	}
	if err != nil {
		tb.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits for something to come true in the page.
func (tb *tab) until(what string, ok func() bool) {
	tb.t.Helper()
	servertest.Eventually(tb.t, what, ok)
}

// drawn waits for two frames, so that what has changed has been drawn.
func (tb *tab) drawn() {
	tb.t.Helper()
	get[bool](tb, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// call gives the browser an order about the tab.
func call[P, R any](tb *tab, command cdp.Command[P, R], params P) R {
	tb.t.Helper()
	ctx, stop := context.WithTimeout(tb.ctx, patience)
	defer stop()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		tb.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// failures is how many of the component's questions have come to nothing, as far as the
// browser has said: it reports each.
func (tb *tab) failures() (n int) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, complaint := range tb.complaints {
		if strings.Contains(complaint, "/countdown/") {
			n++
		}
	}
	return n
}

// offline takes the network away, or brings it back; the page is told, as by a browser.
func (tb *tab) offline(away bool) {
	tb.t.Helper()
	conditions := &network.Conditions{Offline: away, DownloadThroughput: -1, UploadThroughput: -1}
	call(tb, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{conditions}})
	call(tb, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: away, DownloadThroughput: -1, UploadThroughput: -1})
}

// back goes back to the page with the countdown, as the browser's button does.
func (tb *tab) back() {
	tb.t.Helper()
	// The page may be gone before it can say that it goes; what counts is where that leads.
	chromedp.Do(tb.ctx, chromedp.Evaluate[chromedp.Void]("void history.back()"))
	tb.until("the page is back", func() bool {
		ctx, stop := context.WithTimeout(tb.ctx, patience)
		defer stop()
		// On the way from one page to the other there may be none to ask.
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && !!document.querySelector("mailgate-countdown")?.shadowRoot`))
		return err == nil && is
	})
}
